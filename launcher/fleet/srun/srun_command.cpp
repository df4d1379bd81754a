#include "launcher/fleet/srun/srun_command.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "base/text.h"
#include "contract/ddlrun.h"

namespace ddl::launcher {

namespace {

/// A step with one task on each of these nodes, which have the same of the job; takes all that it has there, and binds
/// nothing.
std::vector<std::string> step_on(const SlurmJob& job, const std::vector<std::string>& names) {
  const std::string count = std::to_string(names.size());
  std::vector<std::string> words = {
      "srun", "--jobid=" + job.id, "--nodelist=" + join(names, ","), "-N", count, "-n", count};
  const auto own = std::find_if(job.nodes.begin(), job.nodes.end(),
                                [&](const SlurmNode& one) { return one.name == names.front(); });
  if (own != job.nodes.end() && own->cpus > 0)
    words.push_back("--cpus-per-task=" + std::to_string(own->cpus));
  // Without a number, Slurm 22.05 may leave a step without some of the job's GPUs, or refuse it.
  if (own != job.nodes.end() && own->gpus > 0)
    words.push_back("--gpus-per-node=" + std::to_string(own->gpus));
  words.insert(words.end(), {"--cpu-bind=none", "--gpu-bind=none", "--mpi=none", "--overlap", "--no-kill"});
  return words;
}

}  // namespace

std::vector<std::string> srun_command(const SlurmJob& job, const AllocatedNode& node, const std::string& path,
                                      const std::string& nonce) {
  std::vector<std::string> words = step_on(job, {node.name});
  words.insert(words.end(), {"--input=0", "--unbuffered", "--job-name=ddlrun", path,
                             std::string(contract::kAgentOption), nonce});
  return words;
}

std::vector<std::string> srun_crew_command(const SlurmJob& job, const std::vector<std::string>& names,
                                           const std::string& path, const std::string& nonce) {
  std::vector<std::string> words = step_on(job, names);
  // An agent that ends, ends alone: it is the head that says what becomes of the others.
  words.insert(words.end(), {"--ntasks-per-node=1", "--input=all", "--kill-on-bad-exit=0", "--wait=0",
                             "--job-name=ddlrun", path, std::string(contract::kJoiningAgentOption), nonce});
  return words;
}

Environment srun_environment(const Environment& own) {
  constexpr std::array<std::string_view, 12> kPrefixes = {
      "SLURM_NTASKS",    "SLURM_NPROCS",       "SLURM_TASKS_PER_NODE", "SLURM_CPUS_PER_TASK",
      "SLURM_GPUS_PER_", "SLURM_GPU_BIND",     "SLURM_TRES_PER_TASK",  "SLURM_CPU_BIND",
      "SLURM_MEM_BIND",  "SLURM_DISTRIBUTION", "SLURM_HINT",           "SLURM_THREADS_PER_CORE"};
  constexpr std::array<std::string_view, 4> kNames = {"SLURM_GPUS", "SLURM_EXACT", "SLURM_EXCLUSIVE",
                                                      "SLURM_MPI_TYPE"};
  Environment environment;
  for (const auto& [name, value] : own) {
    const bool is_wish = std::any_of(kPrefixes.begin(), kPrefixes.end(),
                                     [&name = name](auto prefix) { return name.starts_with(prefix); }) ||
                         std::find(kNames.begin(), kNames.end(), name) != kNames.end();
    if (!is_wish) environment.emplace(name, value);
  }
  return environment;
}

}  // namespace ddl::launcher
