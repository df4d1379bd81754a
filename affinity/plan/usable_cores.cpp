#include "affinity/plan/usable_cores.h"

namespace ddl::affinity {

UsableCores usable_cores(const Topology& topology, const BindingPolicy& policy) {
  const CpuSet reserved = reserved_cpus(policy.reserved, topology.l3s);
  UsableCores usable;
  usable.reserves_first_of_share = policy.reserved.first_core_per_l3 && topology.l3s.empty();
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
