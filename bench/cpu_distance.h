// How far apart CPUs are, found out by threads, and CPUs that are far apart.
#pragma once

#include <vector>

#include "base/deadline.h"
#include "bench/workload.h"

namespace ddl::bench {

/// The distance from the first of at least two CPUs to the others. Measures for some microseconds, on threads that are
/// bound to these CPUs; kUnknown if they cannot be started or bound.
Distance distance_of(const std::vector<int>& cpus);

/// As many of the allowed CPUs as there are ranks, of which the first is far from all others. If there are none, waits
/// for them until the deadline, because a virtual machine may move its CPUs, and then returns the first ones.
std::vector<int> far_cpus(const std::vector<int>& allowed, int ranks, Deadline deadline);

/// Waits until the first of these CPUs is far from all others. Returns whether it is.
bool wait_until_far(const std::vector<int>& cpus, Deadline deadline);

}  // namespace ddl::bench
