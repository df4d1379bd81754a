// What the user asks of a job script (ScriptRequest), and the job that results (BatchJob) when this request is
// completed with what is known of the site.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "affinity/plan/binding_plan.h"
#include "base/error.h"
#include "templates/profile/site_profile.h"

namespace ddl::templates {

// What a user requests of a job script, validated, and nothing else.

enum class ScriptLauncher {
  kDdlrun,
  kSrun,  ///< for where ddlrun is not installed: srun with ddlrun's binding
};

/// Numbers are 0 and texts "" if the user gave none.
struct ScriptRequest {
  // How large.
  int num_ranks = 0;
  int nodes = 0;
  int ranks_per_node = 0;
  std::optional<int> gpus_per_node;  ///< 0: none, although the site has some
  std::string memory;                ///< as --mem has it; so are the next two
  std::string memory_per_cpu;
  std::string memory_per_gpu;
  std::string time_limit;
  bool exclusive = false;

  // For whom, where and when: as in sbatch's options of these names.
  std::string job_name;
  std::string account;
  std::string partition;
  std::string qos;
  std::string constraint;
  std::string dependency;
  std::string array;
  bool no_kill = false;  ///< the job outlives the loss of a node
  bool requeue = false;
  int requeue_on = 0;  ///< the exit code with which the ranks ask to be started again; 0: none
  std::string signal;
  std::string output;
  std::string error;
  std::string mail_user;
  std::string mail_type;
  std::vector<std::string> directives;  ///< "--licenses=matlab": more of them

  // What the script sets up.
  std::vector<std::string> modules;
  std::string easybuild_prefix;  ///< a folder of modules that EasyBuild made
  std::string eessi_version;     ///< of the European Environment for Scientific Software Installations
  std::string conda;             ///< an environment's name or folder
  std::string venv;              ///< a folder
  std::vector<SiteVariable> variables;
  std::vector<std::string> setup_lines;  ///< of shell, unchanged
  std::string container;                 ///< an image
  std::string container_runtime;
  std::vector<std::string> container_binds;

  // How the ranks are started.
  ScriptLauncher launcher = ScriptLauncher::kDdlrun;
  std::string ddlrun = "ddlrun";                         ///< the command by which the script calls it
  std::vector<std::vector<std::string>> ddlrun_options;  ///< besides -np; each with its value
  std::vector<std::string> srun_options;                 ///< "--label"
  std::optional<GpuChoice> gpu_choice;
  std::optional<affinity::GpuVendor> gpu_vendor;
  std::string mpi_type;
  affinity::BindingPolicy binding;
  bool has_rank_order = false;  ///< the user's own, not the site's
  std::vector<std::string> command;
};

// A job as its script will request it: the user's request, completed by what is known of the site.

/// Where the ranks of each node run, on nodes that the job has to itself.
struct BatchBinding {
  std::string map_cpu;   ///< "map_cpu:49,57"
  std::string mask_cpu;  ///< "mask_cpu:0xfe000000000000,..."
};

struct BatchJob {
  int num_ranks = 0;
  int nodes = 0;           ///< 0: as many as Slurm needs
  int tasks_per_node = 0;  ///< 0: as Slurm places them
  int gpus_per_node = 0;   ///< to request; 0: none, or another option requests them, or they need no request
  bool has_gpus = false;
  bool has_whole_nodes = false;
  std::string smt_directive;  ///< gives the job the second hardware threads that its ranks use; "" for none
  int cpus_per_task = 0;      ///< as Slurm counts CPUs; 0: its default
  int threads_per_rank = 0;   ///< for OMP_NUM_THREADS, which counts cores; 0: not known
  std::string memory;         ///< for --mem
  std::string partition;
  std::string constraint;
  std::string qos;
  std::string job_name;
  std::string output;
  std::string mpi_type;  ///< for srun; "" for its own default
  std::string cpu_bind;  ///< for srun, if there is no plan: "cores"
  GpuChoice gpu_choice = GpuChoice::kVisibleDevices;
  std::optional<affinity::GpuVendor> gpu_vendor;
  std::vector<std::string> gpus_of_ranks;  ///< by local rank: "3", "0,1"; empty without GPUs
  std::string gpu_bind;                    ///< the same for srun: "map:0,1" or "mask:0x3,0xc"
  std::optional<BatchBinding> binding;     ///< nullopt if the node is not known, or is shared
  std::vector<std::string> notes;          ///< sentences for the user
};

/// "train" of "python3 -u ../train.py --epochs 3": what a person would call the job; letters, digits and "-_.". Pure.
std::string job_name_of(const std::vector<std::string>& command);

/// Completes the request. Pure. site: null where none is named. Error kInvalidArgument: something is missing or
/// contradictory; the sentence names the option.
Result<BatchJob> make_batch_job(const ScriptRequest& request, const SiteProfile* site);

}  // namespace ddl::templates
