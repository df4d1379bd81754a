// How hosts are divided among those that connect to them.
#pragma once

#include <cstddef>
#include <vector>

namespace ddl::launcher {

/// A host that is connected to directly, and those that it is to connect to in its turn.
struct Branch {
  std::size_t first = 0;
  std::vector<std::size_t> rest;
  bool operator==(const Branch&) const = default;
};

/// At most fan_out branches of nearly the same size, in order; one for each node if fan_out is 0 or not less than
/// their number. Pure.
std::vector<Branch> divide(const std::vector<std::size_t>& nodes, int fan_out);

}  // namespace ddl::launcher
