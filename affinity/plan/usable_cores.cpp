#include "affinity/plan/usable_cores.h"

namespace ddl::affinity {

UsableCores usable_cores(const Topology& topology, const BindingPolicy& policy) {
  CpuSet reserved = policy.reserved;
  UsableCores usable;
  if (policy.reserves_first_core_per_l3) {
    // By what the machine has: where a cgroup keeps the first core, the first that is left is not the system's.
    for (const CpuDomain& l3 : topology.l3s) {
      if (!l3.complete.is_empty()) reserved.add(l3.complete.first());
    }
    usable.reserves_first_of_share = topology.l3s.empty();
  }
  for (std::size_t i = 0; i < topology.cores.size(); ++i) {
    const Core& core = topology.cores[i];
    if (core.cpus.intersects(reserved)) {
      usable.reserved |= core.cpus;
    } else {
      usable.cores.push_back(static_cast<int>(i));
    }
  }
  return usable;
}

}  // namespace ddl::affinity
