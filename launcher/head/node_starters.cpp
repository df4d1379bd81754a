#include "launcher/head/node_starters.h"

#include <filesystem>

#include "launcher/agent/node_probe.h"
#include "launcher/fleet/local/local_starter.h"
#include "launcher/fleet/srun/srun_crew.h"
#include "launcher/fleet/srun/srun_starter.h"
#include "launcher/fleet/ssh/ssh_starter.h"

namespace ddl::launcher {
namespace {

std::string own_path() {
  std::error_code ignored;
  return std::filesystem::read_symlink("/proc/self/exe", ignored).string();
}

/// In a Slurm job an agent here is a step's, too, as all the others: what Slurm tells steps, limits and accounts for them
/// holds for every rank. A container without Slurm's commands still has its own node.
bool is_steps(const Allocation& allocation, const Environment& own) {
  return allocation.slurm && has_srun(own);
}

bool is_forked(const JobSpec& spec, const AllocatedNode& node, const std::string& own_name) {
  switch (spec.launcher) {
    case LauncherChoice::kSrun:
    case LauncherChoice::kMpirun:
    case LauncherChoice::kLocal: return true;
    case LauncherChoice::kSsh: return false;
    // A command of the user's own is meant for every host.
    case LauncherChoice::kAuto: return spec.launch_agent.empty() && is_this_machine(node, own_name);
  }
  return false;
}

}  // namespace

NodeStarters::NodeStarters(const JobSpec& spec, const Allocation& allocation, const Environment& own)
    : settings_(ssh_settings(spec, own_path())),
      local_(make_local_starter()),
      ssh_(make_ssh_starter(settings_)) {
  const bool all_are_steps = is_steps(allocation, own);
  if (allocation.slurm) srun_ = make_srun_starter(*allocation.slurm, settings_.remote_path, own);
  if (all_are_steps) crew_ = make_srun_crew_starter(*allocation.slurm, settings_.remote_path, own);
  NodeStarter* const elsewhere = srun_ ? srun_.get() : ssh_.get();
  const std::string own_name = hostname();
  for (const AllocatedNode& node : allocation.nodes)
    by_node_.push_back(!all_are_steps && is_forked(spec, node, own_name) ? local_.get() : elsewhere);
}

}  // namespace ddl::launcher
