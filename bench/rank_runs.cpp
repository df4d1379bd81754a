#include "bench/rank_runs.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>

#include <fmt/format.h>

#include "base/text.h"
#include "bench/blocks.h"
#include "bench/child.h"
#include "bench/cluster.h"
#include "bench/run_folder.h"
#include "bench/scoreboard.h"

namespace ddl::bench {
namespace {

constexpr double kRunTimeout = 600;

// What all ranks see: of a cluster's hosts that is the home, which is in memory, too.
std::string common_folder(const JobShape& job) {
  if (job.hosts == 1) return std::filesystem::temp_directory_path().native();
  const char* home = std::getenv("HOME");
  return home == nullptr ? "/root" : home;
}

// Runs of entrants of one benchmark.
class RankRuns {
 public:
  RankRuns(const JobShape& job, const std::vector<SizePlan>& plan) : job_(job), plan_(plan) {
    if (job.hosts > 1) hosts_.emplace(job.hosts);
  }

  double cpu_seconds() const { return hosts_ ? hosts_->cpu_seconds() : 0; }

  Status set_rate() const {
    for (const std::string& host : hosts_ ? hosts_->names() : std::vector<std::string>()) {
      const Status set = ddl::bench::set_rate(host, job_.rate);
      if (!set) return set;
    }
    return {};
  }

  Result<RunTimes> run(const Entrant& entrant) const {
    const auto folder = RunFolder::make_in(common_folder(job_));
    if (!folder) return fail(folder.error());
    const auto scoreboard = hosts_
                                ? Scoreboard::create_file(folder->path() + "/scoreboard", job_.ranks, plan_)
                                : Scoreboard::create(job_.ranks, plan_);
    if (!scoreboard) return fail(scoreboard.error());
    Command command = entrant.command;
    command.argv.insert(command.argv.end(), {folder->path(), scoreboard->path()});
    const double cpu_before = cpu_seconds();
    auto child = Child::start(command);
    if (!child) return fail(std::move(child.error()));
    const auto cost = child->finish(Deadline::after_seconds(kRunTimeout));
    // Also after a failure: the next entrant begins on empty hosts.
    const Status idle = hosts_ ? hosts_->wait_until_idle() : Status();
    if (!cost) return fail(cost.error());
    if (!idle) return fail(idle.error());
    RunTimes times{{}, cost->cpu_seconds + cpu_seconds() - cpu_before};
    for (std::size_t i = 0; i < plan_.size(); ++i) times.by_case.push_back(scoreboard->slowest_rank(i));
    return times;
  }

 private:
  const JobShape& job_;
  const std::vector<SizePlan>& plan_;
  std::optional<ClusterHosts> hosts_;
};

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
  report.entrants = peers_of(work, site, settings);
  std::vector<Entrant*> entrants;
  for (Entrant& entrant : report.entrants) entrants.push_back(&entrant);
  std::vector<Case*> cases;
  for (Case& one : report.cases) {
    for (const Entrant& entrant : report.entrants) one.entrants.push_back(entrant.name);
    cases.push_back(&one);
  }
  const RankRuns runs(settings.job, work.plan);
  if (const Status set = runs.set_rate(); !set) {
    for (Entrant* entrant : entrants) entrant->failed = set.error().message();
  }
  const LoadWatch watch([&] { return runs.cpu_seconds(); });
  run_blocks(
      report.benchmark, entrants, settings.blocks, [&](const Entrant& entrant) { return runs.run(entrant); },
      cases);
  report.other_load = watch.other_load();
  for (Case& one : report.cases) compare(one, report.entrants, peer_pairings());
}

}  // namespace ddl::bench
