// The start of a job: how each node's agent is started (by fork, ssh or srun), the progress line until all agents have
// answered, and the way from there to a job that can be launched.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/environment.h"
#include "launcher/fleet/fleet.h"
#include "launcher/fleet/node_starter.h"
#include "launcher/fleet/ssh.h"
#include "launcher/fleet/step_starter.h"
#include "launcher/head/job_context.h"
#include "launcher/head/job_planner.h"
#include "launcher/job/allocation.h"
#include "launcher/job/job_spec.h"
#include "launcher/loop/event_loop.h"
#include "launcher/protocol/messages.h"

namespace ddl::launcher {

/// The starters that a job needs, chosen by --launcher: fork on this machine; on other machines the scheduler's in its
/// job, else ssh.
class NodeStarters {
 public:
  /// own: the environment of this process, which describes the job to its scheduler.
  NodeStarters(const JobSpec& spec, const Allocation& allocation, const Environment& own);

  /// How hosts are reached over ssh; passed to agents that start other agents.
  const SshSettings& ssh() const { return settings_; }
  /// Starts the agents of many nodes of a scheduler's job at once; null if it cannot.
  AgentGroupStarter* group_starter() const { return all_are_steps_ ? steps_.get() : nullptr; }
  /// One for each node of the allocation; they live as long as this.
  const std::vector<NodeStarter*>& by_node() const { return by_node_; }

 private:
  SshSettings settings_;
  std::unique_ptr<NodeStarter> local_;
  std::unique_ptr<NodeStarter> ssh_;
  std::unique_ptr<StepStarter> steps_;  ///< only in a scheduler's job
  bool all_are_steps_ = false;          ///< the job's scheduler can be used here
  std::vector<NodeStarter*> by_node_;
};

/// The progress line while agents start: calls show with "2 of 4 hosts have answered, waiting for node3 (3 s)" once
/// a second after the first second, and at the end with "". Without show it does nothing. Lives on the loop's
/// thread.
class FleetProgress {
 public:
  FleetProgress(EventLoop& loop, const Fleet& fleet, const Allocation& allocation,
                std::function<void(const std::string&)> show)
      : loop_(loop), fleet_(fleet), allocation_(allocation), show_(std::move(show)) {}

  void start();
  void stop();

 private:
  void tick();

  EventLoop& loop_;
  const Fleet& fleet_;
  const Allocation& allocation_;
  std::function<void(const std::string&)> show_;
  EventLoop::Timer timer_;
  int seconds_ = 0;
};

/// From the start of the agents until all have answered, the ranks are placed and the nodes hold the ports that these
/// need.
class JobStart : public JobPart {
 public:
  explicit JobStart(const JobContext& job)
      : job_(job), progress_(job.loop, job.fleet, job.allocation, job.notices.progress) {}

  /// Runs the loop. nullopt: the job has ended before, as the supervisor's report says. Error: as
  /// JobPlanner::place_ranks() and add_ports().
  Result<std::optional<JobPlanner>> run();
  /// Every agent has answered, or has failed.
  void on_startup_complete();

  Status on_report(int node, const net::Frame& frame) override;
  void on_agent_lost(int node, const std::string& why) override;
  void on_signal(int signal) override;
  void on_caller_ended(const std::string& text) override;

 private:
  void on(int node, const message::PortsHeld& m);
  void on(int node, const message::AgentFailed& m);
  void give_up(Error error);
  void stop_if_done();

  JobContext job_;
  FleetProgress progress_;
  Result<std::optional<JobPlanner>> planner_;  ///< nullopt until all agents have answered
};

}  // namespace ddl::launcher
