#include "bench/idle_job.h"

#include <unistd.h>

#include <filesystem>
#include <functional>

#include <fmt/format.h>

#include "bench/child.h"
#include "bench/entrants/hold.h"
#include "bench/launchers.h"
#include "bench/process_table.h"

namespace ddl::bench {
namespace {

constexpr int kIdleRanks = 8;
constexpr double kStartTimeout = 60;
constexpr double kSettleSeconds = 0.5;  // what init has started in the background may still be finishing

struct IdleJob {
  pid_t launcher = -1;
  std::vector<pid_t> helpers;  ///< neither the launcher's first process nor a rank
  std::vector<pid_t> ranks;
};

struct Measured {
  double value = 0;
  std::string note;
};

// Starts the job, waits until all ranks are idle, measures, and lets it end.
Result<Measured> while_idle(Launcher launcher, RankProgram program, const Site& site,
                            const Settings& settings,
                            const std::function<Result<Measured>(Child&, const IdleJob&)>& measure) {
  if (const auto absent = why_absent(launcher, program, site)) return fail(ErrorCode::kUnavailable, *absent);
  auto release = make_pipe();
  if (!release) return fail(std::move(release.error()));
  program.argv.push_back("--hold");
  program.argv.push_back(fmt::format("/proc/{}/fd/{}", ::getpid(), release->first.get()));
  const Command command = launch(launcher, program, site, settings);

  auto child = Child::start(command);
  if (!child) return fail(std::move(child.error()));
  DDL_TRY(child->wait_for_output(kHeldWord, program.ranks, Deadline::after_seconds(kStartTimeout)));
  DDL_TRY(child->stay_running(Deadline::after_seconds(kSettleSeconds)));

  const std::size_t rank_word = command.argv.size() - program.argv.size();
  const std::string rank_program = std::filesystem::canonical(command.argv[rank_word]).native();
  IdleJob job;
  job.launcher = child->pid();
  for (const pid_t pid : descendants(child->pid())) {
    (program_of(pid) == rank_program ? job.ranks : job.helpers).push_back(pid);
  }
  if (job.ranks.size() != static_cast<std::size_t>(program.ranks)) {
    return fail(ErrorCode::kInternal, fmt::format("found {} of {} ranks", job.ranks.size(), program.ranks));
  }
  auto value = measure(*child, job);
  release->second.reset();
  if (!value) return value;
  const auto ended = child->finish(Deadline::after_seconds(kStartTimeout));
  if (!ended) return fail(ended.error());
  return value;
}

Result<Measured> memory_of(const std::vector<pid_t>& pids) {
  MemoryUse total;
  for (const pid_t pid : pids) {
    const auto use = memory_use(pid);
    if (!use) return fail(use.error());
    total.unique += use->unique;
    total.resident += use->resident;
  }
  return Measured{
      static_cast<double>(total.unique),
      fmt::format("unique, of {:.1f} MB resident; 2 idle ranks", static_cast<double>(total.resident) / 1e6)};
}

Result<Measured> helpers_memory(Child&, const IdleJob& job) {
  if (job.helpers.empty()) return fail(ErrorCode::kInternal, "found no agent and no spawner");
  return memory_of(job.helpers);
}
Result<Measured> launcher_memory(Child&, const IdleJob& job) { return memory_of({job.launcher}); }

Result<double> cpu_of_all(const IdleJob& job) {
  std::vector<pid_t> all = job.ranks;
  all.insert(all.end(), job.helpers.begin(), job.helpers.end());
  all.push_back(job.launcher);
  double total = 0;
  for (const pid_t pid : all) {
    const auto seconds = cpu_seconds(pid);
    if (!seconds) return fail(seconds.error());
    total += *seconds;
  }
  return total;
}

Gauge gauge(std::string name, std::string label, std::string unit, const Result<Measured>& found) {
  if (!found)
    return {std::move(name), std::move(label), std::move(unit), std::nullopt, found.error().message()};
  return {std::move(name), std::move(label), std::move(unit), found->value, found->note};
}

}  // namespace

std::vector<Gauge> idle_job_gauges(const Site& site, const Settings& settings) {
  const double window = settings.quick ? 0.5 : 10;
  const auto idle_share = [window](Child& child, const IdleJob& job) -> Result<Measured> {
    const auto before = cpu_of_all(job);
    if (!before) return fail(before.error());
    DDL_TRY(child.stay_running(Deadline::after_seconds(window)));
    const auto after = cpu_of_all(job);
    if (!after) return fail(after.error());
    return Measured{
        (*after - *before) / window,
        fmt::format("{} initialised ranks over {} s, all processes of the job", kIdleRanks, window)};
  };
  const RankProgram nothing{{"init_none"}};
  const RankProgram client{{"init_pmix"}};
  const RankProgram ddl{{"init_ddl"}, kIdleRanks};
  const RankProgram mpi{{"init_mpi"}, kIdleRanks};
  const auto measured = [&](Launcher launcher, const RankProgram& program, auto what) {
    return while_idle(launcher, program, site, settings, what);
  };
  return {
      gauge("ddlrun-agent-and-spawner-memory", "ddlrun's agent and spawner", "bytes",
            measured(Launcher::kDdlrun, nothing, helpers_memory)),
      gauge("ddlrun-agent-and-spawner-memory-with-pmix", "the same, with PMIx clients", "bytes",
            measured(Launcher::kDdlrun, client, helpers_memory)),
      gauge("ddlrun-head-memory", "ddlrun's head", "bytes",
            measured(Launcher::kDdlrun, nothing, launcher_memory)),
      gauge("mpirun-memory", "mpirun (head and agent)", "bytes",
            measured(Launcher::kMpirun, nothing, launcher_memory)),
      gauge("ddl-idle-cpu", "libddl under ddlrun, idle", "cores",
            measured(Launcher::kDdlrun, ddl, idle_share)),
      gauge("mpi-idle-cpu", "Open MPI under mpirun, idle", "cores",
            measured(Launcher::kMpirun, mpi, idle_share)),
  };
}

}  // namespace ddl::bench
