#include "templates/profile/site_profile.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "base/text.h"
#include "templates/profile/yaml.h"

namespace ddl::templates {
namespace {

using Kind = YamlNode::Kind;

constexpr int kMaxGpusPerNode = 1024;
constexpr int kMaxCpus = 8192;
constexpr int kMaxJobGigabytes = 1 << 20;
constexpr std::size_t kMaxProfileItems = 1024;

bool is_variable_name(std::string_view name) {
  return !name.empty() && (name[0] < '0' || name[0] > '9') &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
         });
}

/// {NAME: value}, in the order of the file.
auto into_variables(std::vector<SiteVariable>& target) {
  return [&target](const YamlNode& map) -> Status {
    if (map.kind != Kind::kMap || map.items.size() > 2 * kMaxProfileItems)
      return refuse("it takes variables and their values, as in NAME: value");
    for (std::size_t i = 0; i + 1 < map.items.size(); i += 2) {
      const auto name = yaml_text(map.items[i]);
      const auto value = yaml_text(map.items[i + 1]);
      if (!name) return fail(name.error());
      if (!value) return fail(value.error());
      if (!is_variable_name(*name)) return refuse("'" + *name + "' is not a name of a variable");
      target.push_back({*name, *value});
    }
    return {};
  };
}

/// The same, where each value is a part of a file's name.
auto into_folders(std::vector<SiteVariable>& target) {
  return [&target](const YamlNode& map) -> Status {
    DDL_TRY(into_variables(target)(map));
    for (const SiteVariable& folder : target) {
      const bool is_plain = std::all_of(folder.value.begin(), folder.value.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
               c == '_';
      });
      if (!is_plain)
        return refuse("'" + folder.value + "' has other characters than letters, digits, - and _");
    }
    return {};
  };
}

/// One of the words, each with its value.
template <class T>
auto into_choice(T& target, std::initializer_list<std::pair<std::string_view, T>> choices) {
  return [&target, choices = std::vector(choices)](const YamlNode& value) -> Status {
    const auto text = yaml_text(value);
    if (!text) return fail(text.error());
    std::string words;
    for (const auto& [word, meaning] : choices) {
      if (word == *text) {
        target = meaning;
        return {};
      }
      words += (words.empty() ? "" : ", ") + std::string(word);
    }
    return refuse("'" + *text + "' is not one of " + words);
  };
}

/// {a100: {cpus-per-task: 8}}
Status read_partitions(const YamlNode& map, std::string_view file, std::vector<PartitionValues>& target) {
  if (map.kind != Kind::kMap || map.items.size() > 2 * kMaxProfileItems)
    return refuse("it takes partitions and what differs there, as in a100: {cpus-per-task: 8}");
  for (std::size_t i = 0; i + 1 < map.items.size(); i += 2) {
    const auto name = yaml_text(map.items[i]);
    if (!name) return fail(name.error());
    PartitionValues& one = target.emplace_back();
    one.partition = *name;
    DDL_TRY(read_fields(map.items[i + 1], file, {{"cpus-per-task", into(one.cpus_per_task, 1, kMaxCpus)}}));
  }
  return {};
}

}  // namespace

Status read_site_slurm(const YamlNode& map, std::string_view file, SiteSlurm& slurm) {
  const auto gpu_request = into_choice(slurm.gpu_request, {{"gpus-per-node", GpuRequest::kGpusPerNode},
                                                           {"gres", GpuRequest::kGres},
                                                           {"none", GpuRequest::kNone}});
  const auto task_request = into_choice(
      slurm.task_request, {{"ntasks-per-node", TaskRequest::kPerNode}, {"ntasks", TaskRequest::kTotal}});
  const auto gpu_choice = into_choice(
      slurm.gpu_choice, {{"visible-devices", GpuChoice::kVisibleDevices}, {"gpu-bind", GpuChoice::kGpuBind}});
  const auto cpus_are =
      into_choice(slurm.cpus_are, {{"cores", SlurmCpus::kCores}, {"threads", SlurmCpus::kThreads}});
  using Vendor = std::optional<affinity::GpuVendor>;
  const auto gpu_vendor = into_choice<Vendor>(slurm.gpu_vendor, {{"nvidia", affinity::GpuVendor::kNvidia},
                                                                 {"amd", affinity::GpuVendor::kAmd},
                                                                 {"intel", affinity::GpuVendor::kIntel}});
  const auto partitions = [&](const YamlNode& all) { return read_partitions(all, file, slurm.partitions); };
  return read_fields(map, file,
                     {{"account-required", into(slurm.account_required)},
                      {"account-suffix", into(slurm.account_suffix)},
                      {"partition", into(slurm.partition)},
                      {"qos", into(slurm.qos)},
                      {"time-required", into(slurm.time_required)},
                      {"whole-nodes", into(slurm.whole_nodes)},
                      {"whole-node-partitions", into(slurm.whole_node_partitions)},
                      {"shared-qos", into(slurm.shared_qos)},
                      {"gpu-request", gpu_request},
                      {"gpu-type", into(slurm.gpu_type)},
                      {"gpus-per-node", into(slurm.gpus_per_node, 1, kMaxGpusPerNode)},
                      {"gpu-vendor", gpu_vendor},
                      {"task-request", task_request},
                      {"cpus-per-task", into(slurm.cpus_per_task, 1, kMaxCpus)},
                      {"cpus-are", cpus_are},
                      {"partitions", partitions},
                      {"smt-directive", into(slurm.smt_directive)},
                      {"memory-required", into(slurm.memory_required)},
                      {"memory-gb", into(slurm.memory_gb, 1, kMaxJobGigabytes)},
                      {"distribution", into(slurm.distribution)},
                      {"mpi-types", into(slurm.mpi_types)},
                      {"mpi-type", into(slurm.mpi_type)},
                      {"gpu-choice", gpu_choice},
                      {"gpu-bind-closest", into(slurm.gpu_bind_closest)},
                      {"directives", into(slurm.directives)},
                      {"one-node-directives", into(slurm.one_node_directives)},
                      {"srun-only", into(slurm.srun_only)}});
}

bool gives_whole_nodes(const SiteSlurm& slurm, std::string_view partition, std::string_view qos) {
  const auto is_in = [](const std::vector<std::string>& names, std::string_view name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  if (!slurm.whole_nodes || is_in(slurm.shared_qos, qos.empty() ? slurm.qos : qos)) return false;
  if (slurm.whole_node_partitions.empty()) return true;
  // With several partitions the job may get any one of them.
  const auto partitions = split(partition.empty() ? slurm.partition : partition, ',');
  return std::all_of(partitions.begin(), partitions.end(),
                     [&](std::string_view one) { return is_in(slurm.whole_node_partitions, one); });
}

int cpus_per_task_in(const SiteSlurm& slurm, std::string_view partition) {
  std::optional<int> fewest;
  // With several partitions the job may get any one of them.
  for (const std::string_view one : split(partition.empty() ? slurm.partition : partition, ',')) {
    const auto found = std::find_if(slurm.partitions.begin(), slurm.partitions.end(),
                                    [&](const PartitionValues& values) { return values.partition == one; });
    const bool is_own = found != slurm.partitions.end() && found->cpus_per_task > 0;
    const int cpus = is_own ? found->cpus_per_task : slurm.cpus_per_task;
    fewest = std::min(fewest.value_or(cpus), cpus);
  }
  return fewest.value_or(slurm.cpus_per_task);
}

Status read_site_setup(const YamlNode& map, std::string_view file, SiteSetup& setup) {
  const auto container_gpu = into_choice(setup.container_gpu_option, {{"option", true}, {"none", false}});
  const auto container_runtime = into_choice<std::string>(
      setup.container_runtime, {{"apptainer", "apptainer"}, {"singularity", "singularity"}});
  return read_fields(map, file,
                     {{"modules", into(setup.modules)},
                      {"variables", into_variables(setup.variables)},
                      {"one-node-variables", into_variables(setup.one_node_variables)},
                      {"between-nodes-variables", into_variables(setup.between_nodes_variables)},
                      {"node-folders", into_folders(setup.node_folders)},
                      {"lines", into(setup.lines)},
                      {"container-runtime", container_runtime},
                      {"container-gpu", container_gpu},
                      {"container-binds", into(setup.container_binds)},
                      {"needed", [&](const YamlNode& needed) {
                         NeededEnvironment& target = setup.needed.emplace();
                         return read_fields(needed, file,
                                            {{"variables", into_variables(target.variables)},
                                             {"or-module", into(target.module)},
                                             {"reason", into(target.reason)},
                                             {"between-nodes", into(target.between_nodes)}});
                       }}});
}

namespace {

using affinity::NodeModel;

constexpr int kMaxCores = 8192;
constexpr int kMaxGigabytes = 1 << 20;
constexpr std::size_t kMaxDevices = 1024;

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

/// [3, 3, 1, 1]: the NUMA node of each GPU.
Status read_gpu_numa(const YamlNode& list, std::vector<int>& target) {
  if (list.kind != Kind::kSequence || list.items.size() > kMaxDevices)
    return refuse("it takes a list of NUMA nodes, one for each GPU");
  for (const YamlNode& item : list.items) {
    const auto numa = yaml_integer(item, 0, kMaxCores);
    if (!numa) return fail(numa.error());
    target.push_back(static_cast<int>(*numa));
  }
  return {};
}

/// {hsn0: 3}: the NUMA node of each adapter.
Status read_nics(const YamlNode& map, std::vector<NodeModel::Nic>& target) {
  if (map.kind != Kind::kMap || map.items.size() > 2 * kMaxDevices)
    return refuse("it takes the NUMA node of each adapter, as in hsn0: 3");
  for (std::size_t i = 0; i + 1 < map.items.size(); i += 2) {
    const auto name = yaml_text(map.items[i]);
    const auto numa = yaml_integer(map.items[i + 1], 0, kMaxCores);
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
                       {"packages", into(node.packages, 1, kMaxCores)},
                       {"numa-per-package", into(node.numa_per_package, 1, kMaxCores)},
                       {"l3s-per-numa", into(node.l3s_per_numa, 1, kMaxCores)},
                       {"cores-per-l3", into(node.cores_per_l3, 1, kMaxCores)},
                       {"threads-per-core", into(node.threads_per_core, 1, kMaxCores)},
                       {"threads", into(node.threads, threads)},
                       {"memory-per-numa-gb", into(gigabytes, 1, kMaxGigabytes)},
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
