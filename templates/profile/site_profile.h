// The profile of a site, read from YAML: the hardware of its nodes, how ranks are bound there, which options its Slurm
// expects, and what a job script sets up before the ranks start.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "affinity/plan/binding_plan.h"
#include "affinity/source/node_model.h"
#include "affinity/topology.h"
#include "base/error.h"
#include "templates/profile/yaml.h"

namespace ddl::templates {

// How a site's Slurm is to be asked, and what its job scripts hold.

/// Which option asks for GPUs.
enum class GpuRequest {
  kGpusPerNode,  ///< --gpus-per-node=TYPE:N
  kGres,         ///< --gres=gpu:TYPE:N
  kNone,         ///< nodes of the partition come with all of theirs
};

/// How many tasks a node has is said so.
enum class TaskRequest {
  kPerNode,  ///< --ntasks-per-node
  kTotal,    ///< --ntasks, with --mincpus for the CPUs of a node
};

/// How a rank that srun starts gets its GPUs.
enum class GpuChoice {
  kVisibleDevices,  ///< the vendor's variable, set by the rank's local id; all GPUs of the node stay in reach
  kGpuBind,  ///< --gpu-bind=map:..., with --gres-flags=allow-task-sharing so that ranks reach each other's
};

/// What --cpus-per-task counts on nodes whose cores have several hardware threads.
enum class SlurmCpus {
  kUnknown,
  kCores,
  kThreads,
};

struct SiteVariable {
  std::string name;
  std::string value;
  bool operator==(const SiteVariable&) const = default;
};

struct SiteSlurm {
  bool account_required = false;
  std::string account_suffix;  ///< "_g": what accounts for these nodes end in; "" if nothing is known
  std::string partition;       ///< for jobs that name none; "" for Slurm's own default
  std::string qos;             ///< the same for --qos
  bool time_required = false;
  bool whole_nodes = false;  ///< jobs have their nodes to themselves, but for what the next two say
  std::vector<std::string> whole_node_partitions;  ///< only those of these; empty: of all
  std::vector<std::string> shared_qos;             ///< and none of these
  GpuRequest gpu_request = GpuRequest::kGpusPerNode;
  std::string gpu_type;                           ///< "a100", as --gres wants it; "" if it wants none
  int gpus_per_node = 0;                          ///< where no node model tells; 0: none, or unknown
  std::optional<affinity::GpuVendor> gpu_vendor;  ///< the same
  TaskRequest task_request = TaskRequest::kPerNode;
  int cpus_per_task = 0;  ///< as --cpus-per-task has it, with a rank for each GPU; 0: not published
  SlurmCpus cpus_are = SlurmCpus::kUnknown;
  bool memory_required = false;
  int memory_gb =
      0;  ///< of a whole node, for --mem; a job with some of its GPUs asks for their share. 0: ask for none
  std::string distribution;            ///< for srun's --distribution; "" for its own
  std::vector<std::string> mpi_types;  ///< that its srun --mpi=list names; empty: unknown
  std::string mpi_type;  ///< for srun's --mpi where the list is unknown; "" for the site's default
  GpuChoice gpu_choice = GpuChoice::kVisibleDevices;
  bool gpu_bind_closest = true;         ///< false: --gpu-bind=closest chooses wrongly there
  std::vector<std::string> directives;  ///< more of them: "--hint=nomultithread"
  std::vector<std::string> srun_only;   ///< options that count on srun only, and not as directives: "--hint"
};

/// Whether a job of this partition and quality of service has its nodes to itself, so that CPUs of the whole node can be
/// named. Pure. "": the site's own.
bool gives_whole_nodes(const SiteSlurm& slurm, std::string_view partition, std::string_view qos);

/// Variables of which one must be set or a module of the name's beginning loaded, and why: the job goes wrong without.
struct NeededEnvironment {
  std::vector<SiteVariable> variables;
  std::string module;  ///< "NCCL": a module whose name begins so sets them
  std::string reason;
  bool between_nodes = false;  ///< jobs of one node do not need them
};

/// What a job script sets up before it starts the ranks.
struct SiteSetup {
  std::vector<std::string> modules;     ///< for module load, in this order
  std::vector<SiteVariable> variables;  ///< exported as they are, in this order
  std::vector<std::string> lines;       ///< of shell, as they are
  std::string container_runtime;        ///< "apptainer" or "singularity"; "" for whichever is there
  std::vector<std::string> container_binds;
  std::optional<NeededEnvironment> needed;
};

/// The sections "slurm" and "setup" of a profile, as docs/reference/site-schema.md has them. Pure. Error kInvalidArgument
/// with file and line.
Status read_site_slurm(const YamlNode& map, std::string_view file, SiteSlurm& slurm);
Status read_site_setup(const YamlNode& map, std::string_view file, SiteSetup& setup);

// What is known of a site: its nodes, how ranks are bound there, and how its Slurm is asked.

struct SiteProfile {
  std::string name;   ///< "lumi-g": as --site has it
  std::string title;  ///< "LUMI-G, HPE Cray EX with MI250X": for a person
  /// Of a whole node; nothing where nobody has published enough.
  std::optional<affinity::NodeModel> node;
  /// What the site advises; options of the user's win.
  affinity::RankOrder rank_order = affinity::RankOrder::kGpu;
  SiteSlurm slurm;
  SiteSetup setup;
  std::vector<std::string> notes;  ///< sentences: what is not known, and what a user should know
};

/// From YAML as docs/reference/site-schema.md has it. Pure. file: what errors call the text. Error kInvalidArgument, with
/// file and line: no YAML, an unknown key, a value of the wrong kind, or a node that cannot be.
Result<SiteProfile> read_site_profile(std::string_view text, std::string_view file);

}  // namespace ddl::templates
