// What the head reports about a running job: the binding of each rank as the kernel states it (--report-bindings),
// and how long each step of the start took (--verbose).
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "launcher/job/job_report.h"
#include "launcher/plan/launch_plan.h"
#include "launcher/protocol/messages.h"

namespace ddl::launcher {

/// --report-bindings: the binding of each rank as the kernel states it, and its GPUs as the vendor's runtime does,
/// compared with the plan.
class BindingReport {
 public:
  BindingReport() = default;
  /// bindings[i] belongs to plan.nodes[i].
  BindingReport(const LaunchPlan& plan, const std::vector<NodeBinding>& bindings);

  /// Both return nothing until all ranks were added, and the GPUs of those that have some; then a line for each, by
  /// rank: "rank 3 on node1: CPUs 8-15 as planned, memory prefer (many):1, ROCR_VISIBLE_DEVICES=3, GPU-5a8c... at
  /// 0000:c9:00.0 as planned".
  std::vector<std::string> add(const message::RankBound& bound);
  std::vector<std::string> add(const message::VisibleGpus& visible);
  /// The lines of the ranks that were added, if the rest will not be.
  std::vector<std::string> take();
  /// By rank, of a plan of all ranks.
  std::vector<PlannedRank> all_planned() const;
  /// All ranks that were added.
  const std::map<int, BoundRank>& ranks() const { return bound_; }
  /// How the binding of the rank differs from the plan, for a warning; "" if it does not.
  std::string difference(const message::RankBound& bound) const;
  std::string difference(const message::VisibleGpus& visible) const;

 private:
  struct Planned {
    std::string host;
    CpuSet cpus;
    std::vector<int> memory_nodes;
    std::vector<affinity::AssignedGpu> gpus;  ///< that it sees
    std::optional<int> own;                   ///< among them, if it sees those of other ranks, too
  };
  const Planned* planned(int rank) const;
  std::vector<std::string> lines_if_complete();
  std::string line(const message::RankBound& bound) const;
  std::string gpus_text(const message::VisibleGpus& visible) const;

  std::map<int, Planned> ranks_;
  std::map<int, BoundRank> bound_;
  std::set<int> without_gpus_;            ///< ranks that are to be added with GPUs, and were not yet
  std::map<int, std::string> lines_;      ///< of the ranks that were added; empty once returned
  std::map<int, std::string> gpu_texts_;  ///< which end these lines
};

/// "node1: agent 4711 on node1, 8 CPUs on 4 cores, 6.1.0, answered after 0.312 s", with --verbose. Pure.
std::string agent_sentence(const std::string& name, const NodeFacts& facts, double answer_seconds);

/// What is said of the binding of one node's ranks before they start, without the node's name.
struct BindingNotes {
  std::vector<std::string> notes;
  std::vector<std::string> details;  ///< with --verbose
};
/// may_share: that ranks share cores was asked for, or is the policy's choice. Pure.
BindingNotes binding_notes(const NodeBinding& binding, bool may_share);

/// A sentence for each group of hosts whose hard limits do not allow what the ranks are to have. hosts: their names and
/// hard limits. Pure.
std::vector<std::string> reduced_limit_notes(
    const ResourceLimits& soft, const std::vector<std::pair<std::string, ResourceLimits>>& hosts);

/// What a rank on a host has loaded.
using MpiOnHost = std::pair<message::MpiLoaded, std::string>;
/// A warning, if they are not the same file, or not a copy of it; else "". Pure.
std::string mpi_warning(const MpiOnHost& first, const MpiOnHost& other);

/// How long each step of a job's start took: the last line of --verbose. Records points in time; decides nothing.
/// One thread.
class StartTimes {
 public:
  using Clock = std::chrono::steady_clock;

  StartTimes() : begun_(Clock::now()) {}

  /// Every agent has answered. slowest: the node whose agent took longest. seconds: from the start of that agent to
  /// its answer. connect_seconds: the part of it before its greeting (ssh); 0: it was not started over a
  /// connection.
  void on_agents_ready(const std::string& slowest, double seconds, double connect_seconds);
  void on_launched(int num_ranks);
  void on_rank_started() { count(started_, all_started_); }
  /// A rank has called PMIx_Init, itself or by a library.
  void on_rank_initialised() { count(initialised_, all_initialised_); }
  /// libddl's first collective has ended.
  void on_first_collective() {
    if (!first_collective_) first_collective_ = Clock::now();
  }

  /// "start-up: agents ready after 0.312 s (slowest node3: 0.310 s, of which ssh 0.254 s), ..."; one sentence.
  std::string text() const;
  /// The same, step by step.
  std::vector<StartPhase> phases() const;

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

/// What the ranks of the other nodes are told about a lost node. rank_nodes: of each rank. why: a sentence, without the
/// node's name. nullopt: the node has no ranks. Pure.
std::optional<message::HostLost> lost_host(const std::vector<RankOutcome>& ranks,
                                           const std::vector<int>& rank_nodes, int node,
                                           const std::string& why);

}  // namespace ddl::launcher
