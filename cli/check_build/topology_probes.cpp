// Where topologies come from.

#include <fmt/format.h>

#include "affinity/source/topology_source.h"
#include "affinity/source/vendor_gpus.h"
#include "base/text.h"
#include "cli/check_build/probe.h"
#include "cli/check_build/probe_tools.h"
#include "cli/this_process.h"
#include "cli/user_file.h"
#include "templates/site_catalog.h"

namespace ddl::cli {

Finding look_at_hwloc() {
  const auto node = affinity::this_machine(affinity::Devices::kAll)->load();
  if (!node) return fails(node.error().message(), "look whether lstopo works here");
  return works({}, {},
               fmt::format("{}, {}, {}", counted(static_cast<std::int64_t>(node->cores.size()), "core"),
                           counted(static_cast<std::int64_t>(node->numa_nodes.size()), "NUMA node"),
                           counted(static_cast<std::int64_t>(node->gpus.size()), "GPU")));
}

Finding look_at_hwloc_files() {
  const auto node = affinity::hwloc_synthetic("pack:1 numa:2 core:4 pu:2")->load();
  if (!node) return fails(node.error().message());
  if (node->cores.size() != 8) return fails("hwloc reads 8 cores as " + std::to_string(node->cores.size()));
  return works({}, {}, "lstopo's XML, and short forms such as \"pack:1 numa:4 core:8 pu:2\"");
}

namespace {

Finding found(const Result<std::vector<affinity::VendorGpu>>& gpus, const char* remedy) {
  if (!gpus) return fails(gpus.error().message(), remedy);
  return works({}, {}, counted(static_cast<std::int64_t>(gpus->size()), "GPU"));
}

}  // namespace

Finding look_at_nvml() {
  return found(affinity::ask_nvml(), "install NVIDIA's driver, if there are GPUs of theirs");
}
Finding look_at_rocm_smi() {
  return found(affinity::ask_rocm_smi(), "install ROCm, if there are GPUs of AMD's");
}

Finding look_at_site_models() {
  const templates::SiteCatalog catalog(config_folders(process_environment(), "sites"), read_user_file);
  std::vector<std::string> broken;
  const auto sites = catalog.list();
  for (const auto& site : sites) {
    if (const auto profile = catalog.find(site.name); !profile) broken.push_back(profile.error().message());
  }
  if (!broken.empty()) return fails(join(broken, "; "), "correct it: docs/reference/site-schema.md");
  return works({}, {}, counted(static_cast<std::int64_t>(sites.size()), "site"));
}

}  // namespace ddl::cli
