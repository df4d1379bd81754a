#include "launcher/head/fleet_start.h"

#include "base/files.h"
#include "base/text.h"
#include "contract/ddlrun.h"
#include "launcher/fleet/local.h"
#include "launcher/fleet/ssh.h"
#include "launcher/node/agent.h"
#include "launcher/node/node_probe.h"

namespace ddl::launcher {
namespace {

bool is_forked(const JobSpec& spec, const AllocatedNode& node, const std::string& own_name) {
  switch (spec.launcher) {
    case LauncherChoice::kSrun:
    case LauncherChoice::kMpirun:
    case LauncherChoice::kLocal: return true;
    case LauncherChoice::kSsh: return false;
    // A launch agent that the user has given is meant for every host.
    case LauncherChoice::kAuto: return spec.launch_agent.empty() && is_this_machine(node, own_name);
  }
  return false;
}

}  // namespace

NodeStarters::NodeStarters(const JobSpec& spec, const Allocation& allocation, const Environment& own)
    : settings_(ssh_settings(spec, own_path())),
      local_(make_local_starter([](const std::string& session_directory, UniqueFd link, pid_t head) {
        return run_agent(session_directory, std::move(link), {}, {}, head);
      })),
      ssh_(make_ssh_starter(settings_)) {
  const Scheduler& scheduler = scheduler_of(allocation);
  if (!scheduler.starter().empty())
    steps_ = std::make_unique<StepStarter>(scheduler, *allocation.job, settings_.remote_path, own);
  // In a scheduler's job the agent on this machine runs in a step as well, like all others, so that the scheduler's
  // variables, limits and accounting hold for every rank. In a container without the scheduler's commands this machine
  // can still be used: its agent is forked.
  all_are_steps_ = steps_ && has_starter(scheduler, own);
  NodeStarter* const elsewhere = steps_ ? steps_.get() : ssh_.get();
  const std::string own_name = hostname();
  for (const AllocatedNode& node : allocation.nodes)
    by_node_.push_back(!all_are_steps_ && is_forked(spec, node, own_name) ? local_.get() : elsewhere);
}

void FleetProgress::start() {
  if (show_) timer_ = loop_.after(std::chrono::seconds(1), [this] { tick(); });
}

void FleetProgress::stop() {
  timer_.cancel();
  if (show_ && seconds_ > 0) show_("");
  seconds_ = 0;
}

void FleetProgress::tick() {
  ++seconds_;
  const auto missing = fleet_.missing();
  if (!missing.empty()) {
    // Agents are started in this order: the first one that is missing has waited longest.
    show_(std::to_string(fleet_.size() - missing.size()) + " of " +
          counted(static_cast<std::int64_t>(fleet_.size()), "host") + " answered, waiting for " +
          allocation_.nodes[missing.front()].name +
          (missing.size() > 1 ? " and " + counted(static_cast<std::int64_t>(missing.size()) - 1, "other")
                              : "") +
          " (" + std::to_string(seconds_) + " s)");
  }
  timer_ = loop_.after(std::chrono::seconds(1), [this] { tick(); });
}

JobReport start_failure_report(const Fleet& fleet, const Allocation& allocation) {
  JobReport report;
  report.reason = EndReason::kStartFailed;
  report.exit_code = contract::kStartFailure;
  for (const Fleet::Failure& failure : fleet.failures())
    report.host_failures.push_back(allocation.nodes[failure.node].name + ": " + failure.sentence);
  if (report.host_failures.size() == 1) {
    report.message = std::move(report.host_failures.front());
    report.host_failures.clear();
  } else {
    report.message = std::to_string(report.host_failures.size()) + " of " +
                     counted(static_cast<std::int64_t>(fleet.size()), "host") + " did not come up";
  }
  return report;
}

}  // namespace ddl::launcher
