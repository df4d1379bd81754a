#include "templates/site_profile.h"

#include <utility>
#include <vector>

#include "templates/yaml_fields.h"

namespace ddl::templates {
namespace {

using affinity::NodeModel;
using Kind = YamlNode::Kind;

constexpr int kMostCores = 8192;
constexpr int kMostGigabytes = 1 << 20;
constexpr std::size_t kMostDevices = 1024;

Result<affinity::GpuVendor> vendor(const std::string& text) {
  for (const auto one :
       {affinity::GpuVendor::kNvidia, affinity::GpuVendor::kAmd, affinity::GpuVendor::kIntel}) {
    if (text == affinity::name_of(one)) return one;
  }
  return refuse("'" + text + "' is not nvidia, amd or intel");
}

Result<NodeModel::Threads> threads(const std::string& text) {
  if (text == "across") return NodeModel::Threads::kAcross;
  if (text == "adjacent") return NodeModel::Threads::kAdjacent;
  return refuse("'" + text + "' is neither across nor adjacent");
}

Result<affinity::RankOrder> rank_order(const std::string& text) {
  if (text == "gpu") return affinity::RankOrder::kGpu;
  if (text == "cpu") return affinity::RankOrder::kCpu;
  return refuse("'" + text + "' is neither gpu nor cpu");
}

/// [3, 3, 1, 1]: of each GPU its NUMA node.
Status read_gpu_numa(const YamlNode& list, std::vector<int>& target) {
  if (list.kind != Kind::kSequence || list.items.size() > kMostDevices)
    return refuse("it takes a list of NUMA nodes, one for each GPU");
  for (const YamlNode& item : list.items) {
    const auto numa = yaml_integer(item, 0, kMostCores);
    if (!numa) return fail(numa.error());
    target.push_back(static_cast<int>(*numa));
  }
  return {};
}

/// {hsn0: 3}: of each adapter its NUMA node.
Status read_nics(const YamlNode& map, std::vector<NodeModel::Nic>& target) {
  if (map.kind != Kind::kMap || map.items.size() > 2 * kMostDevices)
    return refuse("it takes the NUMA node of each adapter, as in hsn0: 3");
  for (std::size_t i = 0; i + 1 < map.items.size(); i += 2) {
    const auto name = yaml_text(map.items[i]);
    const auto numa = yaml_integer(map.items[i + 1], 0, kMostCores);
    if (!name) return fail(name.error());
    if (!numa) return fail(numa.error());
    target.push_back({*name, static_cast<int>(*numa)});
  }
  return {};
}

Status read_gpus(const YamlNode& map, std::string_view file, NodeModel& node) {
  return read_fields(map, file,
                     {{"vendor", into(node.gpu_vendor, vendor)},
                      {"model", into(node.gpu_model)},
                      {"numa", [&](const YamlNode& list) { return read_gpu_numa(list, node.gpu_numa); }}});
}

Status read_node(const YamlNode& map, std::string_view file, NodeModel& node) {
  int gigabytes = 0;
  DDL_TRY(read_fields(map, file,
                      {{"board", into(node.board)},
                       {"packages", into(node.packages, 1, kMostCores)},
                       {"numa-per-package", into(node.numa_per_package, 1, kMostCores)},
                       {"l3s-per-numa", into(node.l3s_per_numa, 1, kMostCores)},
                       {"cores-per-l3", into(node.cores_per_l3, 1, kMostCores)},
                       {"threads-per-core", into(node.threads_per_core, 1, kMostCores)},
                       {"threads", into(node.threads, threads)},
                       {"memory-per-numa-gb", into(gigabytes, 1, kMostGigabytes)},
                       {"reserved", into(node.reserved, affinity::parse_reserved)},
                       {"gpus", [&](const YamlNode& gpus) { return read_gpus(gpus, file, node); }},
                       {"nics", [&](const YamlNode& nics) { return read_nics(nics, node.nics); }}}));
  node.numa_memory_bytes = static_cast<std::uint64_t>(gigabytes) * 1'000'000'000;
  // So that a profile that is read can be used.
  const auto topology = affinity::topology_of_model(node, std::string(file) + ":" + std::to_string(map.line));
  if (!topology) return fail(topology.error());
  return {};
}

}  // namespace

Result<SiteProfile> read_site_profile(std::string_view text, std::string_view file) {
  const auto root = parse_yaml(text, file);
  if (!root) return fail(root.error());
  SiteProfile site;
  DDL_TRY(
      read_fields(*root, file,
                  {{"name", into(site.name)},
                   {"title", into(site.title)},
                   {"node", [&](const YamlNode& node) { return read_node(node, file, site.node.emplace()); }},
                   {"binding",
                    [&](const YamlNode& binding) {
                      return read_fields(binding, file, {{"rank-order", into(site.rank_order, rank_order)}});
                    }},
                   {"slurm", [&](const YamlNode& slurm) { return read_site_slurm(slurm, file, site.slurm); }},
                   {"setup", [&](const YamlNode& setup) { return read_site_setup(setup, file, site.setup); }},
                   {"notes", into(site.notes)}}));
  if (site.name.empty()) return refuse(std::string(file) + ": has no name");
  return site;
}

}  // namespace ddl::templates
