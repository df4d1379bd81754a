// What libddl tells its launcher through PMIx, if the launcher has asked for it.
#pragma once

namespace ddl::contract {

/// PMIx_Notify_event's status: rank 0 has ended its first collective. In the range that PMIx leaves to others (below
/// PMIX_EXTERNAL_ERR_BASE).
inline constexpr int kFirstCollectiveEvent = -3101;

}  // namespace ddl::contract
