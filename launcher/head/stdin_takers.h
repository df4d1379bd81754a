// How far the nodes have taken ddlrun's standard input: the slowest one counts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace ddl::launcher {

/// The nodes with ranks that read standard input. Pure.
class StdinTakers {
 public:
  StdinTakers() = default;
  explicit StdinTakers(const std::vector<std::size_t>& nodes) {
    for (const std::size_t node : nodes) taken_[node] = 0;
  }

  /// Those that still take; ascending.
  std::vector<std::size_t> nodes() const;
  /// A node has taken so many bytes more. Returns how many more all have taken now.
  std::int64_t take(std::size_t node, std::int64_t bytes);
  /// None of the node's ranks reads any more. Returns the same.
  std::int64_t close(std::size_t node);
  bool is_empty() const { return taken_.empty(); }

 private:
  std::int64_t newly_taken();

  std::map<std::size_t, std::int64_t> taken_;
  std::int64_t reported_ = 0;
};

}  // namespace ddl::launcher
