// The conformance suite of the collectives: what every bootstrap, transport and backend must do, through ddl.h alone.
#pragma once

#include <cstdint>
#include <vector>

#include "ddl/ddl.h"

namespace ddl::conformance {

/// Element counts that matter for slots of so many bytes: none, one, fewer than ranks, a slot's edges, several slots.
std::vector<std::uint64_t> interesting_counts(std::uint64_t slot_bytes, int ranks);

/// Each is collective and throws std::runtime_error with what differs. Expected values are computed from all ranks'
/// inputs, element by element and along the canonical tree of the job's hosts, and compared bit by bit.
void check_allreduce(ddl_context* context, const std::vector<std::uint64_t>& counts);
void check_broadcast(ddl_context* context, const std::vector<std::uint64_t>& counts);
void check_allgather(ddl_context* context, const std::vector<std::uint64_t>& counts);
/// NaN, signed zeros, infinities, overflow, rounding of averages.
void check_special_values(ddl_context* context);
/// Every way in which one rank's call can differ, with every rank as the odd one.
void check_mismatches(ddl_context* context);
/// Every argument that is refused without the others hearing of it.
void check_bad_arguments(ddl_context* context);

/// All of the above.
void check_all(ddl_context* context, const std::vector<std::uint64_t>& counts);

}  // namespace ddl::conformance
