// The connections of a process set's ranks: the sizes of a host's segment, and which hosts are linked when.
#pragma once

#include <cstdint>

#include "runtime/src/bootstrap/bootstrap.h"
#include "runtime/src/common/settings.h"
#include "runtime/src/wire/connections.h"

namespace ddl::runtime {

/// For a set of which this rank is a member: staging slots by the settings and the layout, slots for pairs as the
/// address space allows, and a part of the shared heap for each rank if has_heap. The same on all ranks of a host.
ConnectionPlan plan_connections(const Settings& settings, const Membership& membership, bool has_heap,
                                std::uint32_t first_sequence);

}  // namespace ddl::runtime
