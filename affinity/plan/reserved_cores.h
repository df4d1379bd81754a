// Cores that are left to the system.
#pragma once

#include <string_view>
#include <vector>

#include "affinity/cpu_set.h"
#include "affinity/topology.h"
#include "base/error.h"

namespace ddl::affinity {

struct ReservedCores {
  bool first_core_per_l3 = false;
  CpuSet cpus;  ///< these and the other hardware threads of their cores
  bool operator==(const ReservedCores&) const = default;
};

/// "first-core-per-l3", or CPUs such as "0,8,16-17". Error kInvalidArgument quotes what is neither.
Result<ReservedCores> parse_reserved(std::string_view text);

/// By what the machine has: where a cgroup keeps the first core of an L3, the first that is left is not the system's.
CpuSet reserved_cpus(const ReservedCores& reserved, const std::vector<CpuDomain>& l3s);

}  // namespace ddl::affinity
