// --report-bindings: what the kernel says of each rank, beside what was planned.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "launcher/message/message.h"
#include "launcher/plan/launch_plan.h"
#include "launcher/supervise/job_report.h"

namespace ddl::launcher {

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
    affinity::CpuSet cpus;
    std::vector<int> memory_nodes;
  };
  const Planned* planned(int rank) const;
  std::string line(const message::RankBound& bound) const;

  std::map<int, Planned> ranks_;
  std::map<int, std::string> lines_;  ///< of those that are there
  std::map<int, BoundRank> bound_;
};

}  // namespace ddl::launcher
