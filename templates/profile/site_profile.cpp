#include "templates/profile/site_profile.h"

#include <string>
#include <utility>
#include <vector>

#include "templates/profile/site_fields.h"
#include "templates/profile/yaml.h"

namespace ddl::templates {
namespace {

using Kind = YamlNode::Kind;
using affinity::NodeModel;

constexpr int kMaxCores = 8192;
constexpr int kMaxGigabytes = 1 << 20;
constexpr std::size_t kMaxDevices = 1024;

/// [3, 3, 1, 1]: the NUMA node of each GPU.
Status read_gpu_numa(const YamlNode& list, std::vector<int>& target) {
  if (list.kind != Kind::kSequence || list.items.size() > kMaxDevices)
    return refuse("it takes a list of NUMA nodes, one for each GPU");
  for (const YamlNode& item : list.items) {
    DDL_ASSIGN(numa, yaml_integer(item, 0, kMaxCores));
    target.push_back(static_cast<int>(numa));
  }
  return {};
}

/// {hsn0: 3}: the NUMA node of each adapter.
Status read_nics(const YamlNode& map, std::vector<NodeModel::Nic>& target) {
  if (map.kind != Kind::kMap || map.items.size() > 2 * kMaxDevices)
    return refuse("it takes the NUMA node of each adapter, as in hsn0: 3");
  for (std::size_t i = 0; i + 1 < map.items.size(); i += 2) {
    DDL_ASSIGN(name, yaml_text(map.items[i]));
    DDL_ASSIGN(numa, yaml_integer(map.items[i + 1], 0, kMaxCores));
    target.push_back({std::move(name), static_cast<int>(numa)});
  }
  return {};
}

std::vector<YamlField> gpu_fields(NodeModel& target) {
  return {
      {"vendor",
       into_choice(target.gpu_vendor, {{"nvidia", affinity::GpuVendor::kNvidia},
                                       {"amd", affinity::GpuVendor::kAmd},
                                       {"intel", affinity::GpuVendor::kIntel}}),
       "whose GPUs they are", "`nvidia`"},
      {"model", into(target.gpu_model), "their name, for the picture", ""},
      {"numa",
       {"list of numbers", [&target](const YamlNode& list) { return read_gpu_numa(list, target.gpu_numa); }},
       "the NUMA node of each GPU, in the vendor's order",
       ""},
  };
}

std::vector<YamlField> node_fields(NodeModel& target, int& gigabytes, std::string_view file) {
  const auto read_gpus = [&target, file](const YamlNode& map) {
    return read_fields(map, file, gpu_fields(target));
  };
  return {
      {"board", into(target.board), "the name in the firmware", ""},
      {"packages", into(target.packages, 1, kMaxCores), "sockets", "1"},
      {"numa-per-package", into(target.numa_per_package, 1, kMaxCores), "NUMA nodes with cores in each", "1"},
      {"l3s-per-numa", into(target.l3s_per_numa, 1, kMaxCores), "L3 caches in each", "1"},
      {"cores-per-l3", into(target.cores_per_l3, 1, kMaxCores), "cores that share one", "1"},
      {"threads-per-core", into(target.threads_per_core, 1, kMaxCores), "hardware threads of each core", "1"},
      {"threads",
       into_choice(target.threads,
                   {{"across", NodeModel::Threads::kAcross}, {"adjacent", NodeModel::Threads::kAdjacent}}),
       "`across`: thread t of core c is CPU c + t × cores, as on x86 and Arm. `adjacent`: c × threads + t, "
       "as "
       "on POWER",
       "`across`"},
      {"memory-per-numa-gb", into(gigabytes, 1, kMaxGigabytes), "for the picture", "unknown"},
      {"reserved",
       into("`first-core-per-l3`, or CPUs: `0,8,16-17`", target.reserved, affinity::parse_reserved),
       "cores that jobs do not get", "none"},
      {"gpus", {"map, below", read_gpus}, "the GPUs of the node", "none"},
      {"nics",
       {"map of `NAME: number`", [&target](const YamlNode& map) { return read_nics(map, target.nics); }},
       "the NUMA node of each network adapter",
       "none"},
  };
}

Status read_node(const YamlNode& map, std::string_view file, NodeModel& node) {
  int gigabytes = 0;
  DDL_TRY(read_fields(map, file, node_fields(node, gigabytes, file)));
  node.numa_memory_bytes = static_cast<std::uint64_t>(gigabytes) * 1'000'000'000;
  // So that a profile that is read can be used.
  DDL_TRY(affinity::topology_of_model(node, std::string(file) + ":" + std::to_string(map.line)));
  return {};
}

std::vector<YamlField> binding_fields(SiteProfile& target) {
  return {{"rank-order",
           into_choice(target.rank_order,
                       {{"gpu", affinity::RankOrder::kGpu}, {"cpu", affinity::RankOrder::kCpu}}),
           "as `--rank-order`, which takes precedence", "`gpu`"}};
}

std::vector<YamlField> profile_fields(SiteProfile& target, std::string_view file) {
  const auto read_binding = [&target, file](const YamlNode& map) {
    return read_fields(map, file, binding_fields(target));
  };
  const auto read_slurm = [&target, file](const YamlNode& map) {
    return read_fields(map, file, slurm_fields(target.slurm, file));
  };
  const auto read_setup = [&target, file](const YamlNode& map) {
    return read_fields(map, file, setup_fields(target.setup, file));
  };
  return {
      {"name", into(target.name), "the name for `--site`; required", ""},
      {"title", into(target.title), "a description for readers", ""},
      {"node",
       {"map, below",
        [&target, file](const YamlNode& map) { return read_node(map, file, target.node.emplace()); }},
       "the hardware of a whole node; without it `--show-bind --site` is refused, as too little is published",
       ""},
      {"binding", {"map, below", read_binding}, "what the site advises", ""},
      {"slurm", {"map, below", read_slurm}, "what its Slurm requires", ""},
      {"setup", {"map, below", read_setup}, "what job scripts set up before the ranks start", ""},
      {"notes", into(target.notes),
       "sentences for users: what is not known, what needs attention. `--slurm` prints them on standard "
       "error, but not with `--quiet`",
       ""},
  };
}

SiteKeyTable table_of(std::string map, const std::vector<YamlField>& fields) {
  SiteKeyTable table{std::move(map), {}};
  for (const YamlField& field : fields) {
    table.keys.push_back({std::string(field.key), field.value.accepts, std::string(field.meaning),
                          std::string(field.default_value)});
  }
  return table;
}

}  // namespace

Result<SiteProfile> read_site_profile(std::string_view text, std::string_view file) {
  DDL_ASSIGN(root, parse_yaml(text, file));
  SiteProfile site;
  DDL_TRY(read_fields(root, file, profile_fields(site, file)));
  if (site.name.empty()) return refuse(std::string(file) + ": has no name");
  return site;
}

std::vector<SiteKeyTable> site_key_tables() {
  SiteProfile site;
  NodeModel node;
  PartitionValues partition;
  NeededEnvironment needed;
  int gigabytes = 0;
  return {table_of("", profile_fields(site, "")),
          table_of("node", node_fields(node, gigabytes, "")),
          table_of("gpus", gpu_fields(node)),
          table_of("binding", binding_fields(site)),
          table_of("slurm", slurm_fields(site.slurm, "")),
          table_of("partitions", partition_fields(partition)),
          table_of("setup", setup_fields(site.setup, "")),
          table_of("needed", needed_fields(needed))};
}

}  // namespace ddl::templates
