#include "launcher/fleet/branches.h"

#include <algorithm>

namespace ddl::launcher {

std::vector<Branch> divide(const std::vector<std::size_t>& nodes, int fan_out) {
  const std::size_t count =
      fan_out > 0 ? std::min(nodes.size(), static_cast<std::size_t>(fan_out)) : nodes.size();
  std::vector<Branch> branches;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t begin = nodes.size() * i / count;
    const std::size_t end = nodes.size() * (i + 1) / count;
    branches.push_back({nodes[begin],
                        {nodes.begin() + static_cast<std::ptrdiff_t>(begin) + 1,
                         nodes.begin() + static_cast<std::ptrdiff_t>(end)}});
  }
  return branches;
}

}  // namespace ddl::launcher
