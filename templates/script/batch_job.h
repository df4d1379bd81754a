// A job as its script will ask for it: what the user said, completed by what is known of the site.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "templates/script/script_request.h"
#include "templates/site_profile.h"

namespace ddl::templates {

/// Where the ranks of each node run, on nodes that the job has to itself.
struct BatchBinding {
  std::string map_cpu;   ///< "map_cpu:49,57"
  std::string mask_cpu;  ///< "mask_cpu:0xfe000000000000,..."
};

struct BatchJob {
  int num_proc = 0;
  int nodes = 0;           ///< 0: as many as Slurm needs
  int tasks_per_node = 0;  ///< 0: as Slurm places them
  int gpus_per_node = 0;  ///< to ask for; 0: none, or another option asks for them, or none need be asked for
  bool has_gpus = false;
  bool has_whole_nodes = false;
  int cpus_per_task = 0;     ///< as Slurm counts CPUs; 0: its default
  int threads_per_rank = 0;  ///< for OMP_NUM_THREADS, which counts cores; 0: not known
  std::string memory;        ///< for --mem
  std::string partition;
  std::string qos;
  std::string job_name;
  std::string output;
  std::string mpi_type;  ///< for srun; "" for its own default
  std::string cpu_bind;  ///< for srun, where there is no plan: "cores"
  GpuChoice gpu_choice = GpuChoice::kVisibleDevices;
  std::optional<affinity::GpuVendor> gpu_vendor;
  std::vector<std::string> gpus_of_ranks;  ///< by local rank: "3", "0,1"; empty without GPUs
  std::string gpu_bind;                    ///< the same for srun: "map:0,1" or "mask:0x3,0xc"
  std::optional<BatchBinding> binding;     ///< nothing where the node is not known, or is shared
  std::vector<std::string> notes;          ///< sentences for the user
};

/// Completes the request. Pure. site: null where none is named. Error kInvalidArgument: what is missing, or does not go
/// together, in a sentence that names the option.
Result<BatchJob> make_batch_job(const ScriptRequest& request, const SiteProfile* site);

}  // namespace ddl::templates
