#include "affinity/source/vendor_gpus.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "affinity/source/child_query.h"
#include "base/text.h"

namespace ddl::affinity {
namespace {

/// A driver that is not kept loaded takes seconds to come up.
constexpr std::chrono::seconds kPatience{10};

struct Vendor {
  GpuVendor vendor;
  const char* library;
  Result<std::vector<VendorGpu>> (*ask)();
};
constexpr std::array<Vendor, 2> kVendors{{
    {GpuVendor::kNvidia, "NVML", [] { return ask_nvml(); }},
    {GpuVendor::kAmd, "ROCm SMI", [] { return ask_rocm_smi(); }},
}};

}  // namespace

std::string canonical_bus_id(const std::string& text) {
  std::string id = in_lower_case(text);
  // The domain has eight digits here; Linux writes four unless it needs more.
  const std::size_t colon = id.find(':');
  if (colon == 8 && id.starts_with("0000")) id.erase(0, 4);
  return id;
}

void number_gpus(Topology& topology, GpuVendor vendor, const std::vector<VendorGpu>& known) {
  std::vector<Gpu> numbered;
  for (const VendorGpu& one : known) {
    const auto found = std::find_if(topology.gpus.begin(), topology.gpus.end(), [&](const Gpu& gpu) {
      return gpu.vendor == vendor && gpu.bus_id == one.bus_id;
    });
    if (found == topology.gpus.end()) continue;
    Gpu gpu = *found;  // several may be of one device
    gpu.index = one.index;
    gpu.uuid = one.uuid;
    if (one.by_uuid) gpu.visible_as = one.uuid;
    if (!one.model.empty()) gpu.model = one.model;
    numbered.push_back(std::move(gpu));
  }
  std::stable_sort(numbered.begin(), numbered.end(),
                   [](const Gpu& a, const Gpu& b) { return a.index < b.index; });
  std::erase_if(topology.gpus, [&](const Gpu& gpu) { return gpu.vendor == vendor; });
  topology.gpus.insert(topology.gpus.end(), numbered.begin(), numbered.end());
}

void ask_vendors(Topology& topology) {
  for (const Vendor& one : kVendors) {
    const bool has_some = std::any_of(topology.gpus.begin(), topology.gpus.end(),
                                      [&](const Gpu& gpu) { return gpu.vendor == one.vendor; });
    if (!has_some) continue;
    const auto known = in_child(one.ask, kPatience);
    if (known) {
      number_gpus(topology, one.vendor, *known);
    } else {
      topology.warnings.push_back(
          fmt::format("{} does not answer ({}), so GPUs are numbered by their bus ids", one.library,
                      known.error().message()));
    }
  }
}

}  // namespace ddl::affinity
