// What the ranks of a process set connect: how large the segment of a host is, and which hosts are linked when.
#pragma once

#include <cstdint>

#include "runtime/src/bootstrap/bootstrap.h"
#include "runtime/src/common/settings.h"
#include "runtime/src/wire/connections.h"

namespace ddl::runtime {

/// Of a set of which this rank is a member: staging slots as the settings and the layout ask for, slots for pairs as the
/// address space allows, and a part of the shared heap for each rank if it has_heap. Alike on all ranks of a host.
ConnectionPlan plan_connections(const Settings& settings, const Membership& membership, bool has_heap,
                                std::uint32_t first_sequence);

}  // namespace ddl::runtime
