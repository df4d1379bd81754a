// One collective call with all its parameters, checked against the reference bit by bit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "ddl/ddl.h"
#include "runtime/support/conformance/communicator.h"
#include "runtime/support/reference.h"

namespace ddl::conformance {

enum class Collective {
  kAllreduce,
  kReduce,
  kReduceScatter,
  kScan,
  kBroadcast,
  kAllgather,
  kAllgatherv,
  kGather,
  kScatter,
  kAlltoall,
  kAlltoallv
};
constexpr Collective kCollectives[] = {
    Collective::kAllreduce, Collective::kReduce,    Collective::kReduceScatter, Collective::kScan,
    Collective::kBroadcast, Collective::kAllgather, Collective::kAllgatherv,    Collective::kGather,
    Collective::kScatter,   Collective::kAlltoall,  Collective::kAlltoallv};

const char* name_of(Collective collective);
constexpr bool has_op(Collective collective) { return collective <= Collective::kScan; }
constexpr bool has_root(Collective collective) {
  return collective == Collective::kReduce || collective == Collective::kBroadcast ||
         collective == Collective::kGather || collective == Collective::kScatter;
}
/// Whether each rank has a number of elements of its own.
constexpr bool has_counts(Collective collective) {
  return collective == Collective::kReduceScatter || collective == Collective::kAllgatherv ||
         collective == Collective::kAlltoallv;
}

enum class Buffers { kApart, kInPlace, kBoth };

struct Trial {
  Collective collective = Collective::kAllreduce;
  ddl_dtype dtype = DDL_FLOAT32;
  std::uint64_t count = 0;
  /// Instead of count where has_counts(): by ranks; for alltoallv by senders and then by receivers.
  std::vector<std::uint64_t> counts;
  ddl_op op = DDL_SUM;
  int root = 0;
  Scales scales;
  Buffers buffers = Buffers::kBoth;
  std::size_t shift = 0;   ///< elements by which this rank's buffers are shifted from their usual alignment
  bool in_heap = false;    ///< this rank's buffers lie in the shared heap
  std::uint64_t seed = 1;  ///< of the inputs; the same on all ranks, as everything but the two above
};

/// For Fenced.
inline ddl_context* heap_of(const Communicator& comm, const Trial& trial) {
  return trial.in_heap ? comm.context : nullptr;
}

/// "reduce(float32, sum, root 1) of 10 elements on 3 ranks, rank 2".
std::string describe(const Communicator& comm, const Trial& trial);

/// Makes the call and checks what every buffer holds then. Collective over the process set.
void check(const Communicator& comm, const Trial& trial);

/// Its two halves.
void check_reduction(const Communicator& comm, const Trial& trial);
void check_movement(const Communicator& comm, const Trial& trial);

}  // namespace ddl::conformance
