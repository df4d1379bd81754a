#include <algorithm>

#include "runtime/support/conformance.h"
#include "runtime/support/conformance/sweep.h"

namespace ddl::conformance {

Promises& promises() {
  static Promises kept;
  return kept;
}

std::vector<std::uint64_t> interesting_counts(std::uint64_t slot_bytes, int ranks) {
  const auto size = static_cast<std::uint64_t>(ranks);
  std::vector<std::uint64_t> counts{0, 1, 2, 3, size - 1, size, size + 1, 5 * slot_bytes / 8 + 3};
  for (const std::uint64_t slot : {slot_bytes / 4, slot_bytes / 8}) {
    for (const std::uint64_t count : {slot - 1, slot, slot + 1, 2 * slot, 3 * slot + 1})
      counts.push_back(count);
  }
  std::sort(counts.begin(), counts.end());
  counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
  return counts;
}

void check_allreduce(ddl_context* context, const std::vector<std::uint64_t>& counts) {
  sweep(world_of(context), Collective::kAllreduce, counts, {.every_op = true});
}

void check_broadcast(ddl_context* context, const std::vector<std::uint64_t>& counts) {
  sweep(world_of(context), Collective::kBroadcast, counts, {.every_root = true});
}

void check_allgather(ddl_context* context, const std::vector<std::uint64_t>& counts) {
  sweep(world_of(context), Collective::kAllgather, counts, {});
}

void check_other_reductions(ddl_context* context, const std::vector<std::uint64_t>& counts, Extent extent) {
  const bool every = extent == Extent::kFull;
  const Communicator world = world_of(context);
  for (const Collective collective : {Collective::kReduce, Collective::kReduceScatter, Collective::kScan}) {
    sweep(world, collective, counts, {every, every, every});
  }
}

void check_other_movement(ddl_context* context, const std::vector<std::uint64_t>& counts, Extent extent) {
  const bool every = extent == Extent::kFull;
  const Communicator world = world_of(context);
  for (const Collective collective : {Collective::kAllgatherv, Collective::kGather, Collective::kScatter,
                                      Collective::kAlltoall, Collective::kAlltoallv}) {
    sweep(world, collective, counts, {every, every, every});
  }
}

void check_all(ddl_context* context, const std::vector<std::uint64_t>& counts, Extent extent) {
  check_allreduce(context, counts);
  check_broadcast(context, counts);
  check_allgather(context, counts);
  check_other_reductions(context, counts, extent);
  check_other_movement(context, counts, extent);
  check_transfers(context, counts);
  check_messages(context, 29);
  check_special_values(context);
  check_scales(context);
  check_adasum(context);
  check_mismatches(context, extent);
  check_bad_arguments(context);
}

}  // namespace ddl::conformance
