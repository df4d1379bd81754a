// The checks of a call's arguments, made before anybody else hears of the call.
#pragma once

#include <cstdint>

#include "runtime/src/failure.h"

namespace ddl::runtime {

/// What a collective was given, as far as it takes part in the checks.
struct Buffers {
  const void* send = nullptr;
  void* recv = nullptr;
  std::uint64_t count = 0;
  ddl_dtype dtype = DDL_INT32;
};

/// Type and operation exist; pointers are there and aligned; sizes fit into memory; recv is send or apart from it.
Outcome check_allreduce(const Buffers& buffers, ddl_op op);
/// The same for recv alone, and root is a rank.
Outcome check_broadcast(const Buffers& buffers, int root, int size);
/// recv holds size * count elements; send is this rank's part of it or apart from it.
Outcome check_allgather(const Buffers& buffers, int rank, int size);

}  // namespace ddl::runtime
