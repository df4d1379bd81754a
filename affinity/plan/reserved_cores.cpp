#include "affinity/plan/reserved_cores.h"

#include <string>

namespace ddl::affinity {

Result<ReservedCores> parse_reserved(std::string_view text) {
  if (text == "first-core-per-l3") return ReservedCores{true, {}};
  auto cpus = CpuSet::parse_list(text);
  if (!cpus || cpus->is_empty()) {
    return fail(ErrorCode::kInvalidArgument,
                "'" + std::string(text) + "' is neither first-core-per-l3 nor CPUs such as 0,8,16-17");
  }
  return ReservedCores{false, *std::move(cpus)};
}

CpuSet reserved_cpus(const ReservedCores& reserved, const std::vector<CpuDomain>& l3s) {
  CpuSet cpus = reserved.cpus;
  if (!reserved.first_core_per_l3) return cpus;
  for (const CpuDomain& l3 : l3s) {
    if (!l3.complete.is_empty()) cpus.add(l3.complete.first());
  }
  return cpus;
}

}  // namespace ddl::affinity
