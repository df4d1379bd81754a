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

/// The container in which each rank runs.
struct ContainerRequest {
  std::string image;    ///< "": none; of the container engine the name of an environment, or its file
  std::string runtime;  ///< of container_runtimes()
  std::vector<std::string> binds;    ///< "/scratch", "/scratch:/data"
  std::vector<std::string> options;  ///< "--cleanenv": of the runtime
};

/// Numbers are 0 and texts "" if the user gave none.
struct ScriptRequest {
  // How large.
  int num_ranks = 0;
  int nodes = 0;
  int max_nodes =
      0;  ///< of a range, from nodes on: how many the job gets is known when it starts; 0: no range
  int ranks_per_node = 0;
  int num_processes = 0;             ///< room for so many, of which some wait to replace ranks
  std::optional<int> gpus_per_node;  ///< 0: none, although the site has some
  std::string gpu_type;              ///< "a100"
  int cpus_per_task = 0;             ///< as Slurm counts them
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

  // What the script does before and after the ranks. Lines are of shell, and written unchanged.
  std::vector<std::string> lines_before_modules;
  std::vector<std::string> modules;
  std::string easybuild_prefix;  ///< a folder of modules that EasyBuild made
  std::string eessi_version;     ///< of the European Environment for Scientific Software Installations
  std::string conda;             ///< an environment's name or folder
  std::string venv;              ///< a folder
  std::vector<SiteVariable> variables;
  std::vector<std::string> setup_lines;
  std::vector<std::string> lines_after;  ///< run whatever the ranks have ended with
  ContainerRequest container;

  // How the ranks are started.
  ScriptLauncher launcher = ScriptLauncher::kDdlrun;
  std::string ddlrun = "ddlrun";                         ///< the command by which the script calls it
  std::vector<std::vector<std::string>> ddlrun_options;  ///< besides -np; each with its value
  bool has_sizes = false;  ///< one of these options has several numbers of ranks, in place of -np
  std::vector<std::string> srun_options;  ///< "--label"
  std::optional<GpuChoice> gpu_choice;
  std::optional<affinity::GpuVendor> gpu_vendor;
  std::string mpi_type;
  affinity::BindingPolicy binding;
  bool has_rank_order = false;   ///< the user's own, not the site's
  bool torch_variables = false;  ///< srun's ranks get those by which PyTorch finds the others
  bool starts_own_ranks =
      false;  ///< the command is a launcher, such as torchrun, which has its node to itself
  bool expands_command = false;  ///< the script's shell replaces $NAME in the words of the launch line
  std::vector<std::string> command;
};

// A job as its script will request it: the user's request, completed by what is known of the site.

/// Where the ranks of each node run, on nodes that the job has to itself.
struct BatchBinding {
  std::string map_cpu;   ///< "map_cpu:49,57"
  std::string mask_cpu;  ///< "mask_cpu:0xfe000000000000,..."
};

struct BatchJob {
  int num_ranks = 0;       ///< 0: as many as the nodes that the job gets have
  int nodes = 0;           ///< 0: as many as Slurm needs
  int max_nodes = 0;       ///< of a range; else 0
  int tasks_per_node = 0;  ///< 0: as Slurm places them
  int gpus_per_node = 0;   ///< to request; 0: none, or another option requests them, or they need no request
  std::string gpu_type;    ///< "a100", for that request; "" for any
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
  std::string container_runtime;           ///< "" for apptainer or singularity, whichever is there
  std::vector<std::string> gpus_of_ranks;  ///< by local rank: "3", "0,1"; empty if ranks see all
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
