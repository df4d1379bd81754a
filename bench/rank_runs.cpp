#include "bench/rank_runs.h"

#include <stdlib.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "bench/blocks.h"
#include "bench/cluster.h"
#include "bench/machine.h"
#include "bench/measured_run.h"
#include "bench/scoreboard.h"

namespace ddl::bench {

namespace {

constexpr double kRunTimeout = 600;
constexpr std::chrono::seconds kTimeToBeFar{10};

// A folder that all ranks see. The hosts of a cluster share the home folder, which is a tmpfs there.
std::string common_folder(const JobShape& job) {
  if (job.hosts == 1) return std::filesystem::temp_directory_path().native();
  const char* home = std::getenv("HOME");
  return home == nullptr ? "/root" : home;
}

// The times of the calls during which the ranks were at this distance.
std::vector<double> times_at(Distance distance, const TimedCalls& calls) {
  std::vector<double> times;
  for (std::size_t call = 0; call < calls.seconds.size(); ++call) {
    if (calls.distances[call] == distance) times.push_back(calls.seconds[call]);
  }
  return times;
}

// Those that ranks with a CPU each can have; none if that is not measured.
std::vector<Distance> distances_of(const Settings& settings) {
  const int ranks = settings.job.ranks;
  if (settings.job.hosts > 1 || ranks < 2 || ranks > settings.ranks_with_cpus()) return {};
  if (ranks == 2) return {Distance::kNear, Distance::kFar};
  return {Distance::kNear, Distance::kMixed, Distance::kFar};
}

// Runs the contenders of one benchmark.
class RankRuns {
 public:
  RankRuns(const Settings& settings, const std::vector<SizePlan>& plan)
      : settings_(settings), plan_(plan), distances_(distances_of(settings)) {
    if (job().hosts > 1) hosts_.emplace(job().hosts);
  }

  /// Those for which each size has a case; empty: one for all.
  const std::vector<Distance>& distances() const { return distances_; }

  double cpu_seconds() const { return hosts_ ? hosts_->cpu_seconds() : 0; }

  Status set_rate() const {
    for (const std::string& host : hosts_ ? hosts_->names() : std::vector<std::string>()) {
      DDL_TRY(ddl::bench::set_rate(host, job().rate));
    }
    return {};
  }

  Result<RunTimes> run(const Contender& contender) const {
    // If they do not become so, the report says at which distances there are times.
    if (settings_.is_far && contender.is_bound) wait_until_far(settings_.cpus, Deadline::after(kTimeToBeFar));
    DDL_ASSIGN(folder, TemporaryFolder::make_in(common_folder(job()), "ddl-bench"));
    DDL_ASSIGN(scoreboard, hosts_ ? Scoreboard::create_file(folder.path() + "/scoreboard", job().ranks, plan_)
                                  : Scoreboard::create(job().ranks, plan_));
    Command command = contender.command;
    command.argv.insert(command.argv.end(), {folder.path(), scoreboard.path()});
    const double cpu_before = cpu_seconds();
    DDL_ASSIGN(child, MeasuredRun::start(command));
    const auto cost = child.finish(Deadline::after_seconds(kRunTimeout));
    // Also after a failure: the next contender starts on idle hosts.
    const Status idle = hosts_ ? hosts_->wait_until_idle() : Status();
    if (!cost) return fail(cost.error());
    if (!idle) return fail(idle.error());
    RunTimes times{{}, cost->cpu_seconds + cpu_seconds() - cpu_before};
    for (std::size_t i = 0; i < plan_.size(); ++i) {
      TimedCalls calls = scoreboard.timed_calls(i);
      if (distances_.empty()) times.by_case.push_back(calls.seconds);
      // A contender whose ranks run on any CPU has no distance: all its times count for each.
      for (const Distance distance : distances_)
        times.by_case.push_back(contender.is_bound ? times_at(distance, calls) : calls.seconds);
    }
    return times;
  }

 private:
  const JobShape& job() const { return settings_.job; }

  const Settings& settings_;
  const std::vector<SizePlan>& plan_;
  std::vector<Distance> distances_;
  std::optional<ClusterHosts> hosts_;
};

// Replaces each case by one for each distance.
void split_cases(std::vector<Case>& cases, const std::vector<Distance>& distances) {
  if (distances.empty()) return;
  std::vector<Case> split;
  for (const Case& one : cases) {
    for (const Distance distance : distances) {
      Case& part = split.emplace_back(one);
      part.name += fmt::format("-{}", name_of(distance));
      part.label += fmt::format(", {}", name_of(distance));
      part.distance = distance;
    }
  }
  cases = std::move(split);
}

// Removes the cases of distances that did not come up, and says so.
void drop_missing_distances(Report& report, const std::vector<Distance>& distances) {
  for (Case& one : report.cases) {
    const bool is_missing = std::none_of(one.figures.begin(), one.figures.end(), [&](const Figures& figures) {
      return report.contender(figures.contender).is_bound;
    });
    if (one.distance && is_missing) one.figures.clear();
  }
  for (const Distance distance : distances) {
    std::vector<std::string> missing;
    for (const Case& one : report.cases) {
      if (one.distance == distance && one.figures.empty()) missing.push_back(one.label);
    }
    if (missing.empty()) continue;
    report.remarks.push_back("The ranks were never at this distance: " + join(missing, "; ") + ".");
  }
  std::erase_if(report.cases, [](const Case& one) { return one.distance && one.figures.empty(); });
}

// "10gbit" as people write it: "10 Gbit/s".
std::string rate_text(const std::string& rate) {
  const std::size_t digits = std::min(rate.find_first_not_of("0123456789"), rate.size());
  std::string unit = rate.substr(digits);
  if (!unit.empty()) unit[0] = static_cast<char>(unit[0] - 'a' + 'A');
  return rate.substr(0, digits) + " " + unit + "/s";
}

}  // namespace

std::string job_text(const JobShape& job) {
  const std::string ranks = counted(job.ranks, "rank");
  if (job.hosts == 1) return ranks + " on one host";
  return fmt::format("{} on {} hosts{}", ranks, job.hosts,
                     job.rate.empty() ? "" : " at " + rate_text(job.rate));
}

void run_ranks(Report& report, const RankWork& work, const Site& site) {
  const Settings& settings = report.settings;
  report.machine = describe_machine(site.mpirun);
  report.contenders = contenders_of(work, site, settings);
  const RankRuns runs(settings, work.plan);
  split_cases(report.cases, runs.distances());
  std::vector<Contender*> contenders;
  for (Contender& contender : report.contenders) contenders.push_back(&contender);
  std::vector<Case*> cases;
  for (Case& one : report.cases) {
    for (const Contender& contender : report.contenders) one.contenders.push_back(contender.name);
    cases.push_back(&one);
  }
  if (const Status set = runs.set_rate(); !set) {
    for (Contender* contender : contenders) contender->failed = set.error().message();
  }
  const LoadWatch watch([&] { return runs.cpu_seconds(); });
  run_blocks(
      report.benchmark, contenders, settings.blocks,
      [&](const Contender& contender) { return runs.run(contender); }, cases);
  report.other_load = watch.other_load();
  drop_missing_distances(report, runs.distances());
  for (Case& one : report.cases) compare(one, report.contenders, peer_pairings(site.mpis));
}

}  // namespace ddl::bench
