// What a user asks of a job script, validated, and nothing else.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "affinity/plan/binding_policy.h"
#include "templates/site_slurm.h"

namespace ddl::templates {

enum class ScriptLauncher {
  kDdlrun,
  kSrun,  ///< where ddlrun is not installed: srun with our binding
};

/// Numbers are 0 and texts "" where nothing was said.
struct ScriptRequest {
  // How large.
  int num_proc = 0;
  int nodes = 0;
  int ranks_per_node = 0;
  std::optional<int> gpus_per_node;  ///< 0: none, although the site has some
  std::string memory;                ///< as --mem has it; so are the next two
  std::string memory_per_cpu;
  std::string memory_per_gpu;
  std::string time_limit;
  bool exclusive = false;

  // For whom, where and when: as sbatch's options of these names have them.
  std::string job_name;
  std::string account;
  std::string partition;
  std::string qos;
  std::string constraint;
  std::string dependency;
  std::string array;
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
  std::vector<std::string> setup_lines;  ///< of shell, as they are
  std::string container;                 ///< an image
  std::string container_runtime;
  std::vector<std::string> container_binds;

  // How the ranks are started.
  ScriptLauncher launcher = ScriptLauncher::kDdlrun;
  std::string ddlrun = "ddlrun";                         ///< as the script is to call it
  std::vector<std::vector<std::string>> ddlrun_options;  ///< besides -np; each with its value
  std::vector<std::string> srun_options;                 ///< "--label"
  std::optional<GpuChoice> gpu_choice;
  std::optional<affinity::GpuVendor> gpu_vendor;
  std::string mpi_type;
  affinity::BindingPolicy binding;
  bool has_rank_order = false;  ///< the user's own, which the site's does not replace
  std::vector<std::string> command;
};

}  // namespace ddl::templates
