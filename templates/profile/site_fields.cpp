#include "templates/profile/site_fields.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "affinity/topology.h"
#include "base/environment.h"

namespace ddl::templates {
namespace {

constexpr int kMaxGpusPerNode = 1024;
constexpr int kMaxCpus = 8192;
constexpr int kMaxJobGigabytes = 1 << 20;
constexpr std::size_t kMaxProfileItems = 1024;

/// {NAME: value}, in the order of the file.
YamlReader into_variables(std::vector<SiteVariable>& target) {
  const auto read = [&target](const YamlNode& map) -> Status {
    if (map.kind != YamlNode::Kind::kMap || map.items.size() > 2 * kMaxProfileItems)
      return refuse("it takes variables and their values, as in NAME: value");
    for (std::size_t i = 0; i + 1 < map.items.size(); i += 2) {
      DDL_ASSIGN(name, yaml_text(map.items[i]));
      DDL_ASSIGN(value, yaml_text(map.items[i + 1]));
      if (!is_variable_name(name))
        return refuse("'" + name + "' is not a name that the shell of a job script can export");
      const auto known = std::find_if(target.begin(), target.end(),
                                      [&](const SiteVariable& one) { return one.name == name; });
      if (known != target.end()) {
        known->value = std::move(value);
      } else {
        target.push_back({std::move(name), std::move(value)});
      }
    }
    return {};
  };
  return {"map of `NAME: value`", read};
}

/// The same, where each value is a part of a file's name.
YamlReader into_folders(std::vector<SiteVariable>& target) {
  const auto read = [&target](const YamlNode& map) -> Status {
    DDL_TRY(into_variables(target).read(map));
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
  return {"map of `NAME: folder`", read};
}

}  // namespace

std::span<const std::string_view> container_runtimes() {
  static constexpr std::string_view kRuntimes[] = {"apptainer", "singularity", "pyxis",
                                                   "shifter",   "podman-hpc",  "container-engine"};
  return kRuntimes;
}

std::vector<YamlField> slurm_fields(SiteSlurm& target) {
  const auto gpu_request = into_choice(target.gpu_request, {{"gpus-per-node", GpuRequest::kGpusPerNode},
                                                            {"gres", GpuRequest::kGres},
                                                            {"none", GpuRequest::kNone}});
  const auto task_request = into_choice(
      target.task_request, {{"ntasks-per-node", TaskRequest::kPerNode}, {"ntasks", TaskRequest::kTotal}});
  const auto gpu_choice = into_choice(target.gpu_choice, {{"visible-devices", GpuChoice::kVisibleDevices},
                                                          {"gpu-bind", GpuChoice::kGpuBind}});
  const auto cpus_are =
      into_choice(target.cpus_are, {{"cores", SlurmCpus::kCores}, {"threads", SlurmCpus::kThreads}});
  using Vendor = std::optional<affinity::GpuVendor>;
  const auto gpu_vendor = into_choice<Vendor>(target.gpu_vendor, {{"nvidia", affinity::GpuVendor::kNvidia},
                                                                  {"amd", affinity::GpuVendor::kAmd},
                                                                  {"intel", affinity::GpuVendor::kIntel}});
  return {
      {"account-required", into(target.account_required), "`true`: a script without `--account` is refused",
       "`false`"},
      {"account-suffix", into(target.account_suffix), "the ending of accounts for these nodes: `_g`",
       "unknown"},
      {"partition", into(target.partition), "default of `--partition`", "Slurm's"},
      {"constraint", into(target.constraint), "the same, for `--constraint`", "none"},
      {"qos", into(target.qos), "the same, for `--qos`", "Slurm's"},
      {"time-required", into(target.time_required), "`true`: a script without `--time` is refused",
       "`false`"},
      {"whole-nodes", into(target.whole_nodes),
       "`true`: jobs do not share nodes, so that masks are valid. They then ask for all GPUs of a node",
       "`false`"},
      {"whole-node-partitions", into(target.whole_node_partitions),
       "with `whole-nodes`: only jobs of these partitions do not share nodes", "all"},
      {"shared-qos", into(target.shared_qos),
       "with `whole-nodes`: jobs of these qualities of service share nodes", "none"},
      {"gpu-request", gpu_request,
       "which option of Slurm requests GPUs: `--gpus-per-node=N` or `--gres=gpu:N`; `none`: nodes come with "
       "all of theirs",
       "`gpus-per-node`"},
      {"gpu-type", into(target.gpu_type), "for either option: `a100` makes `a100:4` of 4", ""},
      {"gpus-per-node", into(target.gpus_per_node, 1, kMaxGpusPerNode),
       "number of GPUs, in a profile without `node`",
       "unknown: a GPU for each rank, if the ranks of a node are known; else `--gpus-per-node` is required"},
      {"gpu-vendor", gpu_vendor, "whose GPUs they are, in a profile without `node`",
       "unknown: `--gpu-vendor` is required for a container"},
      {"task-request", task_request,
       "which option of Slurm gives the number of ranks; with `ntasks`, `--mincpus` asks for the CPUs of a "
       "node",
       "`ntasks-per-node`"},
      {"cpus-per-task", into(target.cpus_per_task, 1, kMaxCpus),
       "of a rank with one GPU, as in the option; ranks that share a GPU divide it, and those with several "
       "have more",
       "the node's cores by its ranks, if there is a `node`"},
      {"cpus-are", cpus_are, "what Slurm counts as a CPU if a core has several hardware threads",
       "unknown: jobs that do not share nodes ask for no `--cpus-per-task`"},
      {"smt-directive", into(target.smt_directive),
       "the directive by which a job gets the second hardware threads of its cores, where `cpus-are: cores`: "
       "`--hint=multithread`. A script with `--smt` has it, and `--cpus-per-task` then counts threads",
       "unknown: `--smt` is refused, unless the user gives `--sbatch=--hint=...` or "
       "`--sbatch=--threads-per-core=...`"},
      {"memory-required", into(target.memory_required), "`true`: a script without any `--mem` is refused",
       "`false`"},
      {"memory-gb", into(target.memory_gb, 1, kMaxJobGigabytes),
       "of a whole node, for `--mem`; a job with some of its GPUs asks for their share", "none is asked for"},
      {"distribution", into(target.distribution), "for srun's `--distribution`", ""},
      {"mpi-types", into(target.mpi_types), "the types that `srun --mpi=list` prints there", "unknown"},
      {"mpi-type", into(target.mpi_type), "for srun's `--mpi` if that list is unknown",
       "`--mpi` is left to the site"},
      {"gpu-choice", gpu_choice,
       "how a rank that srun starts gets its GPU: by the vendor's variable, or by `--gpu-bind=map:...`",
       "`visible-devices`"},
      {"gpu-bind-closest", into(target.gpu_bind_closest),
       "`false`: `--gpu-bind=closest` chooses wrongly there, and `--lint` warns of it", "`true`"},
      {"directives", into(target.directives), "further directives: `--hint=nomultithread`", ""},
      {"one-node-directives", into(target.one_node_directives),
       "the same, for jobs of one node: `--network=single_node_vni`", ""},
      {"srun-only", into(target.srun_only),
       "options that have an effect at this site only on srun, for `--lint`: `--hint`", ""},
  };
}

std::vector<YamlField> needed_fields(NeededEnvironment& target) {
  return {
      {"variables", into_variables(target.variables), "without which the job goes wrong", ""},
      {"or-module", into(target.module), "a module whose name begins so sets them: `NCCL`", ""},
      {"reason", into(target.reason), "what goes wrong, for the warning of `--lint`", ""},
      {"between-nodes", into(target.between_nodes), "`true`: jobs of one node do not need them", "`false`"},
  };
}

std::vector<YamlField> setup_fields(SiteSetup& target, std::string_view file) {
  const auto container_gpu = into_choice(target.container_gpu_option, {{"option", true}, {"none", false}});
  const auto container_runtime =
      into_choice<std::string>(target.container_runtime, {{"apptainer", "apptainer"},
                                                          {"singularity", "singularity"},
                                                          {"pyxis", "pyxis"},
                                                          {"shifter", "shifter"},
                                                          {"podman-hpc", "podman-hpc"},
                                                          {"container-engine", "container-engine"}});
  const auto read_needed = [&target, file](const YamlNode& map) {
    return read_fields(map, file, needed_fields(target.needed.emplace()));
  };
  return {
      {"modules", into(target.modules), "for `module load`, before the user's", ""},
      {"variables", into_variables(target.variables),
       "exported. The user's `-x` takes precedence: in scripts with `--launcher srun` it replaces the "
       "variable, otherwise `ddlrun` sets it for the ranks",
       ""},
      {"one-node-variables", into_variables(target.one_node_variables), "more of them, for jobs of one node",
       ""},
      {"between-nodes-variables", into_variables(target.between_nodes_variables),
       "more of them, for jobs of several nodes", ""},
      {"variables-in-containers", into(target.variables_in_containers),
       "`false`: scripts with `--container` have none of these three, and need none, because what starts "
       "containers there sets its own",
       "`true`"},
      {"node-folders", into_folders(target.node_folders),
       "variables that name a folder of each node's own. `NAME: cache` is `/tmp/USER-cache-JOB`, where JOB "
       "is the number of the Slurm job; outside of Slurm `/tmp/USER-cache`. What uses the folder makes it",
       ""},
      {"lines", into(target.lines), "lines of shell, written unchanged", ""},
      {"container-runtime", container_runtime, "what runs containers", "whichever is there"},
      {"container-gpu", container_gpu,
       "`option`: containers get `--nv` or `--rocm`. `none`: they see the GPUs without it", "`option`"},
      {"container-binds", into(target.container_binds), "folders that containers get", ""},
      {"needed",
       {"map, below", read_needed},
       "variables that a script must set, unless a module is loaded. For ranks, and for `--lint`, which "
       "warns if a script sets none of them",
       ""},
  };
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

}  // namespace ddl::templates
