// What the head reports about a running job: the binding of each rank as the kernel has it (--report-bindings), and how long
// each step of the start took (--verbose).
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "launcher/job/job_report.h"
#include "launcher/plan/launch_plan.h"
#include "launcher/protocol/messages.h"

namespace ddl::launcher {

// --report-bindings: what the kernel says of each rank, beside what was planned.

class BindingReport {
 public:
  BindingReport() = default;
  explicit BindingReport(const LaunchPlan& plan);

  /// Once all ranks are there, a line for each in their order: "rank 3 on node1: CPUs 8-15 as planned, memory prefer
  /// (many):1, ROCR_VISIBLE_DEVICES=3". Until then nothing.
  std::vector<std::string> add(const message::RankBound& bound);
  /// The lines of those that are there, where no more will come.
  std::vector<std::string> take();
  /// Of all that were added.
  const std::map<int, BoundRank>& ranks() const { return bound_; }
  /// How the rank differs from what was planned, for a warning; "" if it does not.
  std::string difference(const message::RankBound& bound) const;

 private:
  struct Planned {
    std::string host;
    CpuSet cpus;
    std::vector<int> memory_nodes;
  };
  const Planned* planned(int rank) const;
  std::string line(const message::RankBound& bound) const;

  std::map<int, Planned> ranks_;
  std::map<int, std::string> lines_;  ///< of those that are there
  std::map<int, BoundRank> bound_;
};

// Where the time goes until a job is at work: what --verbose ends with.

/// Collects moments; decides nothing. One thread.
class StartTimes {
 public:
  using Clock = std::chrono::steady_clock;

  StartTimes() : begun_(Clock::now()) {}

  /// Every agent has answered. slowest: the name of the one that took longest, so many seconds from its own start, of
  /// which connect_seconds went by before it greeted (ssh); 0: nobody connected.
  void on_agents_ready(const std::string& slowest, double seconds, double connect_seconds);
  void on_launched(int num_ranks);
  void on_rank_started() { count(started_, all_started_); }
  /// A rank has called PMIx_Init, by whatever library.
  void on_rank_initialised() { count(initialised_, all_initialised_); }
  /// libddl's first collective has ended.
  void on_first_collective() {
    if (!first_collective_) first_collective_ = Clock::now();
  }

  /// "start-up: agents ready after 0.312 s (slowest node3: 0.310 s, of which ssh 0.254 s), ..."; one sentence.
  std::string text() const;

 private:
  void count(int& so_far, std::optional<Clock::time_point>& all) {
    if (++so_far == num_ranks_) all = Clock::now();
  }

  Clock::time_point begun_;
  std::optional<Clock::time_point> agents_ready_;
  std::optional<Clock::time_point> launched_;
  std::optional<Clock::time_point> all_started_;
  std::optional<Clock::time_point> all_initialised_;
  std::optional<Clock::time_point> first_collective_;
  std::string slowest_;
  double slowest_seconds_ = 0;
  double connect_seconds_ = 0;
  int num_ranks_ = 0;
  int started_ = 0;
  int initialised_ = 0;
};

}  // namespace ddl::launcher
