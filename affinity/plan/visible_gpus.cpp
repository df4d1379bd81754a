#include "affinity/plan/visible_gpus.h"

#include <algorithm>
#include <optional>

#include "base/text.h"

namespace ddl::affinity {
namespace {

/// More than any node has: the value is the user's.
constexpr std::size_t kMostVisible = 1024;

bool is_uuid(std::string_view word) { return word.starts_with("GPU-") || word.starts_with("MIG-"); }

std::optional<Gpu> gpu_named(const std::vector<Gpu>& gpus, GpuVendor vendor, std::string_view word) {
  const auto index = parse_integer(word);
  const auto is_meant = [&](const Gpu& gpu) {
    if (gpu.vendor != vendor) return false;
    return index ? gpu.index == *index : is_uuid(word) && gpu.uuid.starts_with(word);
  };
  const auto found = std::find_if(gpus.begin(), gpus.end(), is_meant);
  if (found != gpus.end()) return *found;
  if (!is_uuid(word)) return std::nullopt;
  Gpu unknown;
  unknown.vendor = vendor;
  unknown.uuid = word;
  return unknown;
}

}  // namespace

void keep_visible(Topology& topology, GpuVendor vendor, std::string_view value) {
  std::vector<Gpu> visible;
  for (const std::string_view part : split(value, ',')) {
    const std::string_view word = trim(part);
    auto gpu = gpu_named(topology.gpus, vendor, word);
    if (!gpu || visible.size() == kMostVisible) break;
    gpu->visible_as = word;
    visible.push_back(*std::move(gpu));
  }
  // A device without a place of its own in the node is counted as the program will count it.
  for (std::size_t i = 0; i < visible.size(); ++i) {
    if (visible[i].bus_id.empty() && !visible[i].uuid.empty()) visible[i].index = static_cast<int>(i);
  }
  topology.gpus = std::move(visible);
}

}  // namespace ddl::affinity
