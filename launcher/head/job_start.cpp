#include "launcher/head/job_start.h"

#include <csignal>

#include "base/files.h"
#include "base/text.h"
#include "contract/ddlrun.h"
#include "launcher/fleet/local.h"
#include "launcher/fleet/ssh.h"
#include "launcher/node/agent.h"
#include "launcher/node/node_probe.h"
#include "launcher/protocol/codec.h"

namespace ddl::launcher {
namespace {

bool is_forked(const JobSpec& spec, const AllocatedNode& node, const std::string& own_name) {
  switch (spec.launcher) {
    case LauncherChoice::kSrun:
    case LauncherChoice::kMpirun:
    case LauncherChoice::kLocal: return true;
    case LauncherChoice::kSsh: return false;
    // A launch agent that the user has given is meant for every host.
    case LauncherChoice::kAuto: return spec.ssh.launch_agent.empty() && is_this_machine(node, own_name);
  }
  return false;
}

SshSettings with_remote_path(SshSettings ssh) {
  if (ssh.remote_path.empty()) ssh.remote_path = own_path();
  return ssh;
}

}  // namespace

NodeStarters::NodeStarters(const JobSpec& spec, const Allocation& allocation, const Environment& own)
    : settings_(with_remote_path(spec.ssh)),
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
    show_(std::to_string(fleet_.size() - missing.size()) + " of " + counted(fleet_.size(), "host") +
          " answered, waiting for " + allocation_.nodes[missing.front()].name +
          (missing.size() > 1 ? " and " + counted(missing.size() - 1, "other") : "") + " (" +
          std::to_string(seconds_) + " s)");
  }
  timer_ = loop_.after(std::chrono::seconds(1), [this] { tick(); });
}

Result<std::optional<JobPlanner>> JobStart::run() {
  progress_.start();
  job_.loop.run();
  progress_.stop();
  return std::move(planner_);
}

namespace {

/// One sentence for each host whose agent did not start.
JobEnd start_failure(const Fleet& fleet, const Allocation& allocation) {
  JobEnd end;
  end.reason = EndReason::kStartFailed;
  end.exit_code = contract::kStartFailure;
  for (const auto& [node, why] : fleet.failures())
    end.host_failures.push_back(allocation.nodes[node].name + ": " + why);
  if (end.host_failures.size() == 1) {
    end.message = std::move(end.host_failures.front());
    end.host_failures.clear();
  } else {
    end.message = std::to_string(end.host_failures.size()) + " of " + counted(fleet.size(), "host") +
                  " did not come up";
  }
  return end;
}

}  // namespace

void JobStart::on_startup_complete() {
  progress_.stop();
  const Fleet& fleet = job_.fleet;
  if (!fleet.failures().empty()) {
    job_.supervisor.on_agents_not_started(start_failure(fleet, job_.allocation));
    return stop_if_done();
  }
  const auto& names = job_.allocation.nodes;
  for (int node = 0; node < fleet.size(); ++node)
    job_.notices.detail(agent_sentence(names[node].name, fleet.facts()[node], fleet.answer_seconds(node)));
  const int slowest = fleet.slowest();
  job_.times.on_agents_ready(names[slowest].name, fleet.answer_seconds(slowest),
                             fleet.connect_seconds(slowest));

  auto placed = JobPlanner::place_ranks(job_.spec, job_.allocation, fleet.facts(), job_.head_environment);
  if (!placed) return give_up(std::move(placed.error()));
  const JobPlanner& planner = planner_->emplace(*std::move(placed));
  job_.fleet.select(planner.allocated_nodes());
  if (planner.has_all_ports()) return job_.loop.stop();
  for (int node = 0; node < job_.fleet.size(); ++node)
    job_.fleet.send(node, message::HoldPorts{planner.wanted_ports(node)});
}

Status JobStart::on_report(int node, const net::Frame& frame) {
  DDL_ASSIGN(report, message::decode<message::NodeReport>(frame));
  if (const auto* const held = std::get_if<message::PortsHeld>(&report)) on(node, *held);
  if (const auto* const failed = std::get_if<message::AgentFailed>(&report)) on(node, *failed);
  return {};
}

void JobStart::on(int node, const message::PortsHeld& m) {
  if (!planner_ || !*planner_) return;
  JobPlanner& planner = **planner_;
  if (auto status = planner.add_ports(node, m.ports); !status) return give_up(std::move(status.error()));
  if (planner.has_all_ports()) job_.loop.stop();
}

void JobStart::on(int node, const message::AgentFailed& m) {
  const std::string sentence = job_.fleet.name(node) + ": " + m.text;
  if (m.end_signal != 0) {
    job_.supervisor.on_agent_termination_requested(node, sentence, m.end_signal);
  } else {
    job_.supervisor.on_agent_failed(node, sentence, m.lost);
  }
  stop_if_done();
}

void JobStart::on_agent_lost(int node, const std::string& why) {
  job_.supervisor.on_agent_failed(node, job_.fleet.name(node) + ": " + why, true);
  stop_if_done();
}

void JobStart::on_signal(int signal) {
  if (signal == SIGUSR1 || signal == SIGUSR2 || signal == SIGCONT) return;  // there are no ranks
  if (signal == SIGTSTP) {
    progress_.stop();
    return job_.fleet.stop_self();
  }
  job_.supervisor.on_signal(signal);
  stop_if_done();
}

void JobStart::on_caller_ended(const std::string& text) {
  job_.supervisor.on_caller_ended(text);
  stop_if_done();
}

void JobStart::give_up(Error error) {
  planner_ = fail(std::move(error));
  job_.loop.stop();
}

void JobStart::stop_if_done() {
  if (!job_.supervisor.is_done()) return;
  if (planner_) planner_->reset();
  job_.loop.stop();
}

}  // namespace ddl::launcher
