#include "launcher/head/stdin_takers.h"

#include <algorithm>

namespace ddl::launcher {

std::vector<std::size_t> StdinTakers::nodes() const {
  std::vector<std::size_t> nodes;
  for (const auto& [node, bytes] : taken_) nodes.push_back(node);
  return nodes;
}

std::int64_t StdinTakers::take(std::size_t node, std::int64_t bytes) {
  const auto found = taken_.find(node);
  if (found == taken_.end()) return 0;
  found->second += bytes;
  return newly_taken();
}

std::int64_t StdinTakers::close(std::size_t node) {
  taken_.erase(node);
  return newly_taken();
}

std::int64_t StdinTakers::newly_taken() {
  if (taken_.empty()) return 0;
  const auto slowest = std::min_element(taken_.begin(), taken_.end(),
                                        [](const auto& a, const auto& b) { return a.second < b.second; });
  const std::int64_t more = slowest->second - reported_;
  reported_ = slowest->second;
  return more;
}

}  // namespace ddl::launcher
