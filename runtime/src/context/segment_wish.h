// What memory the ranks of a process set share on a host.
#pragma once

#include <cstdint>

#include "runtime/src/bootstrap/bootstrap.h"
#include "runtime/src/channel/segment_shape.h"
#include "runtime/src/settings.h"

namespace ddl::runtime {

/// The segment of a set of which this rank is a member: staging slots as the settings and the layout ask for, slots for
/// pairs as the address space allows, and a part of the shared heap for each rank if it has_heap. Alike on all ranks of
/// the host.
SegmentWish wish_of(const Settings& settings, const Membership& membership, bool has_heap,
                    std::uint32_t first_sequence);

}  // namespace ddl::runtime
