// What the report of an elastic job has about each of its generations and hosts, and the sentences with which they begin.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "launcher/elastic/membership.h"
#include "launcher/job/job_report.h"

namespace ddl::launcher {

/// Of a job that goes on when others fail, from its start on. One thread.
class GenerationReports {
 public:
  /// A generation begins, and with that the one before has ended. hosts: of its ranks. membership: with the member that
  /// was lost. "generation 1: going on with 3 ranks on node1, node2 from commit 841, 0.012 s after that".
  std::string begin(const Membership::Plan& plan, std::vector<std::string> hosts,
                    const Membership& membership);
  /// The job has ended, and with it the last one.
  void end(const JobEnd& how);
  /// Those that have ended so and were to go on, by name_of(EndReason).
  std::map<std::string, std::int64_t> failures() const;
  std::vector<GenerationReport> take() { return std::move(reports_); }

  /// Of one of the launches on this host.
  void add_usage(const std::string& host, const NodeUsage& usage);
  /// By host what its longest launch has counted: others at the same time have counted the same. GPUs are those of all
  /// its launches, which only watch those of their own ranks.
  const std::vector<HostUsage>& usages() const { return usages_; }

  /// Since the job began.
  double seconds() const { return std::chrono::duration<double>(Clock::now() - began_).count(); }

 private:
  using Clock = std::chrono::steady_clock;

  const Clock::time_point began_ = Clock::now();
  std::vector<GenerationReport> reports_;
  std::vector<HostUsage> usages_;
};

}  // namespace ddl::launcher
