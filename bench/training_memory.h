// What the programs that measure training steps have in common.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "ddl/training/parameters.hpp"

namespace ddl::bench {

inline double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// What is trained, in memory of this rank.
class TrainedMemory {
 public:
  explicit TrainedMemory(const std::vector<std::uint64_t>& counts) {
    for (const std::uint64_t count : counts) tensors_.emplace_back(count, 0.5f);
  }
  std::vector<training::Parameter> parameters() {
    std::vector<training::Parameter> all;
    for (std::size_t i = 0; i < tensors_.size(); ++i)
      all.push_back(
          training::parameter("tensor " + std::to_string(i), tensors_[i].data(), tensors_[i].size()));
    return all;
  }

 private:
  std::vector<std::vector<float>> tensors_;
};

}  // namespace ddl::bench
