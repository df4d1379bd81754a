// The conformance suite of the collectives: what every bootstrap, transport and backend must do, through ddl.h alone.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ddl/ddl.h"

namespace ddl::conformance {

/// Element counts that matter for slots of this size: none, one, fewer than ranks, around the size of a slot, several
/// slots.
std::vector<std::uint64_t> interesting_counts(std::uint64_t slot_bytes, int ranks);

/// What memory of GPUs need not keep of what is promised for CPU memory.
struct Promises {
  /// 16-bit floats are rounded once, at the end, also where there are averages and factors.
  bool rounds_once = true;
  /// Floats are combined along the canonical tree of the job's hosts.
  bool has_canonical_order = true;
};
/// Of this program: set before the checks.
Promises& promises();

/// How much is tried: everything with everything, or every value of every choice with some of the others.
enum class Extent { kSome, kFull };

/// Each is collective and throws std::runtime_error with what differs. Expected values are computed from all ranks'
/// inputs, element by element and along the canonical tree of the job's hosts, and compared bit by bit.
void check_allreduce(ddl_context* context, const std::vector<std::uint64_t>& counts);
void check_broadcast(ddl_context* context, const std::vector<std::uint64_t>& counts);
void check_allgather(ddl_context* context, const std::vector<std::uint64_t>& counts);
/// reduce, reduce_scatter and scan.
void check_other_reductions(ddl_context* context, const std::vector<std::uint64_t>& counts,
                            Extent extent = Extent::kSome);
/// allgatherv, gather, scatter, alltoall and alltoallv.
void check_other_movement(ddl_context* context, const std::vector<std::uint64_t>& counts,
                          Extent extent = Extent::kSome);
/// send and recv between all ranks, in both directions, in rings and in process sets, and mismatches between two
/// ranks.
void check_transfers(ddl_context* context, const std::vector<std::uint64_t>& counts);
/// Messages of sizes below, at and above the limits of the protocol, in rings, fans and random orders, on the world and
/// on a part of it, with mismatches and bad arguments.
void check_messages(ddl_context* context, std::uint64_t seed);
/// NaN, signed zeros, infinities, overflow, rounding of averages.
void check_special_values(ddl_context* context);
/// What inputs and results are multiplied by, with every type and operation.
void check_scales(ddl_context* context);
/// Allreduces by Adasum, of one tensor and of several named ones, on the world and on a part of it.
void check_adasum(ddl_context* context);
/// Every way in which one rank's call can differ. Every rank is the mismatched one in turn; with kSome on large jobs,
/// one rank for each way.
void check_mismatches(ddl_context* context, Extent extent = Extent::kSome);
/// Every argument that is refused without communication with the other ranks.
void check_bad_arguments(ddl_context* context);

/// All of the above.
void check_all(ddl_context* context, const std::vector<std::uint64_t>& counts, Extent extent = Extent::kSome);

/// Process sets: made by lists and by splits, what they compute, their mismatches and their arguments.
void check_process_sets(ddl_context* context);
/// Process sets that are made by their members alone, through a store of files in this folder, which all ranks see.
/// Some waits for members that do not come are part of kFull.
void check_member_sets(ddl_context* context, const std::string& folder, Extent extent = Extent::kSome);
/// The cases of Horovod's tests of its collectives.
void check_horovod_cases(ddl_context* context);
/// This number of calls, each drawn with all its arguments from a seed that all ranks share, on several process sets.
void check_random_operations(ddl_context* context, std::uint64_t seed, int operations);
/// Random steps of named tensors on the world and a part of it, drawn from a seed that all ranks share: of all kinds and
/// sizes, in orders of each rank's own, by several threads at once, in groups, with priorities, and with ranks that
/// join. Beside them the ordered collectives with the same data: the same bits.
void check_named_tensors(ddl_context* context, std::uint64_t seed, int steps);

}  // namespace ddl::conformance
