// Where topologies come from.

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include <fmt/format.h>

#include "affinity/source/topology_source.h"
#include "affinity/source/vendor_gpus.h"
#include "base/shared_library.h"
#include "base/text.h"
#include "cli/check_build/probe.h"
#include "cli/check_build/probe_tools.h"
#include "cli/this_process.h"
#include "cli/user_file.h"
#include "templates/profile/site_catalog.h"

namespace ddl::cli {

namespace {

constexpr char kHwlocLibrary[] = "libhwloc.so.15";

/// "" where it cannot be found out.
std::string hwloc_file() {
  const auto library = SharedLibrary::load(kHwlocLibrary);
  return library ? library->path() : "";
}

}  // namespace

Finding look_at_hwloc() {
  const auto node = affinity::this_machine(affinity::Devices::kAll)->load();
  if (!node) return fails(node.error().message(), "look whether lstopo works here");
  return works(affinity::hwloc_version(), hwloc_file(),
               fmt::format("{}, {}, {}", counted(static_cast<std::int64_t>(node->cores.size()), "core"),
                           counted(static_cast<std::int64_t>(node->numa_nodes.size()), "NUMA node"),
                           counted(static_cast<std::int64_t>(node->gpus.size()), "GPU")));
}

Finding look_at_hwloc_plugins() {
  namespace fs = std::filesystem;
  const char* configured = std::getenv("HWLOC_PLUGINS_PATH");
  const fs::path folder =
      configured != nullptr ? fs::path(configured) : fs::path(hwloc_file()).parent_path() / "hwloc";
  std::vector<std::string> loaded, broken;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    const std::string file = entry.path().filename().string();
    if (!file.starts_with("hwloc_") || !file.ends_with(".so")) continue;
    const auto library = SharedLibrary::load(entry.path().string());
    if (library) {
      loaded.push_back(entry.path().stem().string().substr(std::string_view("hwloc_").size()));
    } else {
      broken.push_back(library.error().message());
    }
  }
  std::sort(loaded.begin(), loaded.end());
  constexpr char kNotNeeded[] = "ddlrun finds GPUs without them";
  if (!broken.empty()) return fails(join(broken, "; "), kNotNeeded);
  if (loaded.empty()) return fails("there are none in " + folder.string(), kNotNeeded);
  return works({}, folder.string(), join(loaded, ", ") + "; " + kNotNeeded);
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
  if (!broken.empty())
    return fails(join(broken, "; "), "correct it: " + document("reference/site-schema.md"));
  return works({}, {}, counted(static_cast<std::int64_t>(sites.size()), "site"));
}

}  // namespace ddl::cli
