#include "launcher/head/generation_reports.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/text.h"
#include "contract/ddlrun.h"

namespace ddl::launcher {
namespace {

/// Why the job went on to the generation of this plan.
JobEnd end_before(const Membership::Plan& plan, const Membership& membership) {
  if (!plan.lost) return end_with(EndReason::kHostsChanged, 0);
  const Member& lost = membership.member(*plan.lost);
  JobEnd how = lost.outcome.kind == RankOutcome::Kind::kRunning
                   ? end_with(EndReason::kHostLost, contract::kLostHost, lost.why_lost)
                   : end_with(EndReason::kRankFailed, exit_code_of(lost.outcome),
                              rank_label(lost.outcome) + " " + how_it_ended(lost.outcome));
  how.first_failure = lost.outcome.rank;
  return how;
}

}  // namespace

std::string GenerationReports::begin(const Membership::Plan& plan, std::vector<std::string> hosts,
                                     const Membership& membership) {
  if (!reports_.empty()) end(end_before(plan, membership));
  GenerationReport& report = reports_.emplace_back();
  report.number.generation = plan.generation;
  report.num_ranks = static_cast<int>(std::ssize(plan.members));
  report.hosts = std::move(hosts);
  report.begin_seconds = seconds();
  report.commits = plan.commits;
  if (plan.lost_at)
    report.recovery_seconds = std::chrono::duration<double>(Clock::now() - *plan.lost_at).count();
  const std::string from = plan.commits > 0 ? fmt::format(" from commit {}", plan.commits) : "";
  const std::string after =
      report.recovery_seconds ? fmt::format(", {:.3f} s after that", *report.recovery_seconds) : "";
  return fmt::format("generation {}: {}{} on {}{}{}", plan.generation,
                     plan.generation == 0 ? "" : "going on with ", counted(plan.members.size(), "rank"),
                     join(report.hosts, ", "), from, after);
}

void GenerationReports::end(const JobEnd& how) {
  if (reports_.empty()) return;
  reports_.back().run_seconds = seconds() - reports_.back().begin_seconds;
  reports_.back().end = how;
}

std::map<std::string, std::int64_t> GenerationReports::failures() const {
  std::map<std::string, std::int64_t> failures;
  for (const GenerationReport& one : reports_)
    if (is_failure(one.end.reason)) ++failures[name_of(one.end.reason)];
  return failures;
}

void GenerationReports::add_usage(const std::string& host, const NodeUsage& usage) {
  const auto known = std::ranges::find(usages_, host, &HostUsage::host);
  if (known == usages_.end()) return usages_.push_back({host, usage});
  const std::int64_t peak = std::max(known->usage.memory.peak, usage.memory.peak);
  NodeUsage shorter = usage;
  if (usage.seconds.value > known->usage.seconds.value) std::swap(known->usage, shorter);
  known->usage.memory.peak = peak;
  std::vector<GpuUse>& gpus = known->usage.gpus;
  for (const GpuUse& gpu : shorter.gpus)
    if (std::ranges::find(gpus, gpu.index, &GpuUse::index) == gpus.end()) gpus.push_back(gpu);
  if (!gpus.empty()) known->usage.gpus_unknown.clear();
}

}  // namespace ddl::launcher
