// The profile of a site, read from YAML: the hardware of its nodes, how ranks are bound there, which options its
// Slurm expects, and what a job script sets up before the ranks start.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "affinity/plan/binding_plan.h"
#include "affinity/source/node_model.h"
#include "affinity/topology.h"
#include "base/error.h"
#include "templates/profile/site_facts.h"

namespace ddl::templates {

// How to request resources of a site's Slurm, and what its job scripts contain.

/// Which option requests GPUs.
enum class GpuRequest {
  kGpusPerNode,  ///< --gpus-per-node=TYPE:N
  kGres,         ///< --gres=gpu:TYPE:N
  kNone,         ///< nodes of the partition come with all of theirs
};

/// Which option gives the number of tasks.
enum class TaskRequest {
  kPerNode,  ///< --ntasks-per-node
  kTotal,    ///< --ntasks, with --mincpus for the CPUs of a node
};

/// How a rank that srun starts gets its GPUs.
enum class GpuChoice {
  kVisibleDevices,  ///< the vendor's variable, set by the rank's local id; all GPUs of the node stay accessible
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
  std::string constraint;      ///< the same for --constraint
  std::string qos;             ///< the same for --qos
  bool time_required = false;
  bool whole_nodes = false;  ///< jobs have their nodes to themselves, except as the next two fields say
  std::vector<std::string> whole_node_partitions;  ///< only jobs of these; empty: of all
  std::vector<std::string> shared_qos;             ///< and no jobs of these
  GpuRequest gpu_request = GpuRequest::kGpusPerNode;
  std::string gpu_type;                           ///< "a100", as --gres wants it; "" if it wants none
  int gpus_per_node = 0;                          ///< if there is no node model; 0: none, or unknown
  std::optional<affinity::GpuVendor> gpu_vendor;  ///< the same
  TaskRequest task_request = TaskRequest::kPerNode;
  int cpus_per_task = 0;  ///< as --cpus-per-task has it, with a rank for each GPU; 0: not published
  SlurmCpus cpus_are = SlurmCpus::kUnknown;
  /// By which a job gets the second hardware threads where CPUs are cores: "--hint=multithread".
  std::string smt_directive;
  bool memory_required = false;
  int memory_gb =
      0;  ///< of a whole node, for --mem; a job with some of its GPUs requests their share. 0: request none
  std::string distribution;            ///< for srun's --distribution; "" for its own
  std::vector<std::string> mpi_types;  ///< that its srun --mpi=list names; empty: unknown
  std::string mpi_type;  ///< for srun's --mpi where the list is unknown; "" for the site's default
  GpuChoice gpu_choice = GpuChoice::kVisibleDevices;
  bool gpu_bind_closest = true;                  ///< false: --gpu-bind=closest chooses wrongly there
  std::vector<std::string> directives;           ///< more of them: "--hint=nomultithread"
  std::vector<std::string> one_node_directives;  ///< more of them, for jobs of one node
  std::vector<std::string> srun_only;  ///< options that count on srun only, and not as directives: "--hint"
};

/// Whether a job of this partition and quality of service has its nodes to itself, so that CPUs of the whole node can
/// be named. Pure. "": the site's own.
bool gives_whole_nodes(const SiteSlurm& slurm, std::string_view partition, std::string_view qos);

/// Variables without which the job goes wrong, unless a module whose name begins with module is loaded, and the
/// reason. A script in which one of them is set passes --lint.
struct NeededEnvironment {
  std::vector<SiteVariable> variables;
  std::string module;  ///< "NCCL": a module whose name begins so sets them
  std::string reason;
  bool between_nodes = false;  ///< jobs of one node do not need them
};

/// What runs containers: "apptainer", "pyxis", ... Static.
std::span<const std::string_view> container_runtimes();

/// What is set up before the ranks start. Modules, lines and containers are for job scripts alone; the variables also
/// for ranks that ddlrun starts (profile/site_environment.h).
struct SiteSetup {
  std::vector<std::string> modules;                   ///< for module load, in this order
  std::vector<SiteVariable> variables;                ///< exported unchanged, in this order
  std::vector<SiteVariable> one_node_variables;       ///< more of them, for jobs of one node
  std::vector<SiteVariable> between_nodes_variables;  ///< the same, for jobs of several nodes
  /// Each names a folder of the node's own, below /tmp: the value is a part of the folder's name.
  std::vector<SiteVariable> node_folders;
  std::vector<std::string> lines;  ///< of shell, unchanged
  /// Of container_runtimes(); "": apptainer or singularity, whichever is there.
  std::string container_runtime;
  bool variables_in_containers = true;  ///< false: what starts containers there sets them in its own way
  bool container_gpu_option = true;     ///< false: containers see GPUs without --nv or --rocm
  std::vector<std::string> container_binds;
  std::optional<NeededEnvironment> needed;
};

// What is known of a site: its nodes, how ranks are bound there, and how to request resources of its Slurm.

/// What holds for one job: the nodes that it gets, and what its site requires of it.
struct SiteProfile {
  std::string name;   ///< "lumi-g": as --site has it
  std::string title;  ///< "LUMI-G, HPE Cray EX with MI250X": for a person
  /// Of a whole node; nullopt if too little about it has been published, or if it depends on what the job requests.
  std::optional<affinity::NodeModel> node;
  /// What the site advises; the user's options take precedence.
  affinity::RankOrder rank_order = affinity::RankOrder::kGpu;
  SiteSlurm slurm;
  SiteSetup setup;
  std::vector<std::string> notes;  ///< sentences: what is not known, and what a user should know
  /// Of jobs that this is for, and of no others; empty: it depends on something else, or it is for all. A word that ends
  /// in * stands for all that begin so.
  std::vector<std::string> partitions;
  std::vector<std::string> constraints;
  std::vector<std::string> qos;
};

/// By which a job says which nodes of a site it wants; each as sbatch's option of this name has it, "" without it.
struct NodeRequest {
  std::string partition;   ///< "standard-g", "small,standard"
  std::string constraint;  ///< "gpu&hbm80g"
  std::string qos;
};

/// Jobs of a site for which something else holds than for its others, in most cases because they get other nodes.
struct SiteVariant {
  std::string name;     ///< "g"; with the site's name before it, it is one for --site: "lumi-g"
  SiteProfile profile;  ///< complete: what holds for the site, and in its place what differs here
};

/// Whether a job that requests these nodes is one that the profile is for. Pure.
bool is_for(const SiteProfile& site, const NodeRequest& request);

struct Site {
  SiteProfile all;  ///< what holds for all jobs
  std::vector<SiteVariant> variants;
  std::string closed;           ///< not "": why there is no profile of it any more, and which site follows
  std::string default_variant;  ///< of jobs whose request does not tell; "": none
  std::vector<SiteSource> sources;
};

/// The profile of the jobs that request these nodes. Pure. variant: the one that the user has named, or "". Where the
/// request names nodes of no variant, or of several, it is what holds for all jobs, with a note that says so. The default
/// variant has the site's name unless the user has named it.
SiteProfile profile_of(const Site& site, const NodeRequest& request, std::string_view variant = {});

/// Leaves to what starts containers at a site what it sets itself: SiteSetup::variables_in_containers.
void leave_to_containers(SiteSetup& setup);

/// From YAML as docs/reference/site-schema.md has it, and ddl-site(5). Pure. file: what errors call the text. Error kInvalidArgument,
/// with file and line: text that is not YAML, an unknown key, a value of the wrong kind, or an impossible node.
Result<Site> read_site(std::string_view text, std::string_view file);
/// Its profile of jobs whose request does not tell. Errors as there.
Result<SiteProfile> read_site_profile(std::string_view text, std::string_view file);

/// What documents say of a key of a profile. Words of the file are in backquotes.
struct SiteKey {
  std::string key;
  std::string accepts;  ///< which values: "number from 1 to 8192"
  std::string meaning;
  std::string default_value;  ///< "": there is none, or it is not worth a word
};

/// The keys of one map in a profile.
struct SiteKeyTable {
  std::string map;  ///< the key that has this map: "node"; "" for the whole profile
  std::vector<SiteKey> keys;
};

/// All keys, from the table by which read_site_profile() reads them. Pure.
std::vector<SiteKeyTable> site_key_tables();

}  // namespace ddl::templates
