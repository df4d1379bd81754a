// Memory that MPI reads and writes on a call's way.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/src/cluster/verdict.h"

namespace ddl::runtime {

/// Stays as it is while an operation is under way, and for ever if that was given up.
struct MpiBuffers {
  std::array<std::uint64_t, 2> own_print{};
  std::array<std::uint64_t, 2> least_print{};
  CallStamp own_stamp;
  std::vector<CallStamp> stamps;
  std::vector<std::byte> send;
  std::vector<std::byte> recv;
  std::vector<std::byte> result;
};

}  // namespace ddl::runtime
