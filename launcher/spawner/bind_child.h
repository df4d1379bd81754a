// A process binds itself to CPUs and memory.
#pragma once

#include <vector>

#include "affinity/cpu_set.h"

namespace ddl::launcher {

/// Each returns 0 or an errno. Only for a process with one thread.
/// EINVAL also where the kernel has quietly left some CPUs out, as a cgroup can make it do.
int bind_to_cpus(const affinity::CpuSet& cpus);
/// Memory comes from these NUMA nodes while they have some (set_mempolicy(2), MPOL_PREFERRED_MANY; before Linux 5.15 the first
/// of them). Success on a kernel without NUMA.
int prefer_memory_of(const std::vector<int>& nodes);

}  // namespace ddl::launcher
