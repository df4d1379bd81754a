// The benchmark "launch": the time in which a job of 2 ranks is started and ended, the memory and CPU time of a job
// whose ranks are idle, and the time in which ddlrun plans where ranks run.
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <vector>

#include <fmt/format.h>

#include "base/process_tree.h"
#include "bench/benchmarks.h"
#include "bench/blocks.h"
#include "bench/idle_rank.h"
#include "bench/launchers.h"
#include "bench/measured_run.h"
#include "bench/planning_gauges.h"
#include "bench/process_table.h"
#include "bench/report.h"
#include "bench/settings.h"
#include "bench/statistics.h"

namespace ddl::bench {

/// Starts jobs whose ranks initialise and then block, and measures
///  - memory, at 2 ranks of a program that initialises nothing, and of a PMIx client: the processes that each
///    launcher itself keeps running;
///  - CPU, at 8 initialised ranks over a few seconds: all processes of the job, launcher and ranks.
std::vector<Gauge> idle_job_gauges(const Site& site, const Settings& settings);

// The benchmark "launch".
namespace {

constexpr double kLaunchTimeout = 30;

// Skips the search for network fabrics, which a job on one host does not need.
const std::vector<std::string> kSharedMemoryOnly = {"--mca", "pml", "ob1", "--mca", "btl", "self,vader"};

struct LaunchRow {
  const char* case_name;
  Contender contender;
  Launcher launcher;
  RankProgram program;
};

// The contenders. Within a case they are in the order of the table and the chart.
std::vector<LaunchRow> launch_rows(const std::vector<PeerMpi>& mpis) {
  using enum Launcher;
  std::vector<LaunchRow> rows{
      {"true",
       {.name = "true-floor", .label = "fork + exec", .why = "two processes without a launcher: the floor"},
       kFloor,
       {{"/bin/true"}}},
      {"true",
       {.name = "true-ddlrun", .label = "ddlrun", .why = "ours", .is_ours = true},
       kDdlrun,
       {{"/bin/true"}}},
      {"true",
       {.name = "true-ddlrun-again",
        .label = "ddlrun, again",
        .why = "A/A",
        .again_of = "true-ddlrun",
        .is_ours = true},
       kDdlrun,
       {{"/bin/true"}}},
      {"true",
       {.name = "true-mpirun", .label = "mpirun", .why = "the launcher most people have"},
       kMpirun,
       {{"/bin/true"}}},

      {"pmix",
       {.name = "pmix-ddlrun", .label = "ddlrun", .why = "ours: PMIx_Init, PMIx_Finalize", .is_ours = true},
       kDdlrun,
       {{"init_pmix"}}},
      {"pmix",
       {.name = "pmix-ddlrun-again",
        .label = "ddlrun, again",
        .why = "A/A",
        .again_of = "pmix-ddlrun",
        .is_ours = true},
       kDdlrun,
       {{"init_pmix"}}},
      {"pmix",
       {.name = "pmix-mpirun", .label = "mpirun", .why = "the same client of its PMIx server"},
       kMpirun,
       {{"init_pmix"}}},

      {"init",
       {.name = "init-ddl-ddlrun", .label = "libddl, ddlrun", .why = "ours", .is_ours = true},
       kDdlrun,
       {{"init_ddl"}}},
      {"init",
       {.name = "init-ddl-again",
        .label = "libddl, ddlrun, again",
        .why = "A/A",
        .again_of = "init-ddl-ddlrun",
        .is_ours = true},
       kDdlrun,
       {{"init_ddl"}}},
      {"init",
       {.name = "init-mpi-mpirun", .label = "Open MPI, mpirun", .why = "as most people run it"},
       kMpirun,
       {{"init_mpi"}}},
      {"init",
       {.name = "init-mpi-mpirun-tuned",
        .label = "Open MPI tuned, mpirun",
        .why = "without a search for network fabrics: its best honest setting on one host"},
       kMpirun,
       {.argv = {"init_mpi"}, .launcher_options = kSharedMemoryOnly}},
      {"init",
       {.name = "init-mpi-ddlrun",
        .label = "Open MPI, ddlrun",
        .why = "an unmodified MPI program under ddlrun",
        .is_ours = true},
       kDdlrun,
       {{"init_mpi"}}},
      {"init",
       {.name = "init-ddl-mpirun", .label = "libddl, mpirun", .why = "our library under the other launcher"},
       kMpirun,
       {{"init_ddl"}}},
  };
  for (const PeerMpi& mpi : mpis) {
    rows.push_back({"true",
                    {.name = "true-" + mpi.name, .label = mpi.version.label(), .why = "its mpiexec"},
                    kMpirun,
                    {.argv = {"/bin/true"}, .environment = mpi.environment(), .mpi = &mpi}});
    rows.push_back(
        {"init",
         {.name = "init-" + mpi.name, .label = mpi.version.label(), .why = "as most people run it"},
         kMpirun,
         {.argv = {mpi.program("init")}, .environment = mpi.environment(), .mpi = &mpi}});
  }
  return rows;
}

// Of the contenders that there always are.
const std::vector<Pairing> kPairings = {
    {"true-ddlrun", "true-mpirun"},         {"pmix-ddlrun", "pmix-mpirun"},
    {"init-ddl-ddlrun", "init-mpi-mpirun"}, {"init-ddl-ddlrun", "init-mpi-mpirun-tuned"},
    {"init-mpi-ddlrun", "init-mpi-mpirun"},
};

std::vector<Pairing> launch_pairings(const std::vector<PeerMpi>& mpis) {
  std::vector<Pairing> pairings = kPairings;
  for (const PeerMpi& mpi : mpis)
    pairings.insert(pairings.end(),
                    {{"true-ddlrun", "true-" + mpi.name}, {"init-ddl-ddlrun", "init-" + mpi.name}});
  return pairings;
}

const std::vector<std::pair<const char*, const char*>> kCases = {
    {"true", "/bin/true"}, {"pmix", "PMIx client"}, {"init", "init + finalize"}};

Result<RunTimes> run_once(const Contender& contender) {
  DDL_ASSIGN(child, MeasuredRun::start(contender.command));
  DDL_ASSIGN(cost, child.finish(Deadline::after_seconds(kLaunchTimeout)));
  return RunTimes{{{cost.wall_seconds}}, cost.cpu_seconds};
}

}  // namespace

std::vector<Contender> launch_contenders(const Site& site, const Settings& settings) {
  std::vector<Contender> contenders;
  for (LaunchRow& row : launch_rows(site.mpis)) {
    row.contender.command = launch(row.launcher, row.program, site, settings);
    row.contender.absent = why_absent(row.launcher, row.program, site);
    contenders.push_back(std::move(row.contender));
  }
  return contenders;
}

Report run_launch(const Site& site, const Settings& settings) {
  Report report;
  report.benchmark = "launch";
  report.title = "launch: starting and ending a job of 2 ranks";
  report.method = "Wall time of the whole command, from before its spawn until it has been reaped.";
  report.settings = settings;
  report.machine = describe_machine(site.mpirun);
  report.contenders = launch_contenders(site, settings);
  const std::vector<LaunchRow> table = launch_rows(site.mpis);
  const LoadWatch watch;
  for (const auto& [name, label] : kCases) {
    Case one{.name = name, .label = label};
    std::vector<Contender*> contenders;
    for (std::size_t i = 0; i < table.size(); ++i) {
      if (table[i].case_name != one.name) continue;
      one.contenders.push_back(report.contenders[i].name);
      contenders.push_back(&report.contenders[i]);
    }
    run_blocks(report.benchmark + " " + one.label, contenders, settings.blocks, run_once, {&one});
    compare(one, report.contenders, launch_pairings(site.mpis));
    report.cases.push_back(std::move(one));
  }
  report.gauges = idle_job_gauges(site, settings);
  for (Gauge& gauge : planning_gauges(settings)) report.gauges.push_back(std::move(gauge));
  report.other_load = watch.other_load();
  report.aims = {
      ratio_aim(report, "ddlrun starts /bin/true no slower than mpirun", {"true-ddlrun", "true-mpirun"}, 1),
      ratio_aim(report, "libddl's init + finalize takes at most 0.4x of Open MPI's",
                {"init-ddl-ddlrun", "init-mpi-mpirun"}, 0.4),
      gauge_aim(report, "agent and spawner have less than 5 MB of unique memory, PMIx clients connected",
                "ddlrun-agent-and-spawner-memory-with-pmix", 5e6, "MB", 1e-6),
      gauge_aim(report, "an idle job of 8 ranks uses less than 0.01% of a core", "ddl-idle-cpu", 0.0001, "%",
                100),
      gauge_aim(report, "the same after steps with named tensors uses less than 0.1% of a core",
                "ddl-named-idle-cpu", 0.001, "%", 100),
      gauge_aim(report, "planning a node of 256 CPUs and 8 GPUs takes less than 10 ms", "ddlrun-planning",
                0.01, "ms", 1000),
      gauge_aim(report, "planning and encoding 10,000 nodes of 8 ranks takes less than 1 s",
                "ddlrun-large-plan", 1, "s", 1),
      gauge_aim(report, "and less than 200 MB", "ddlrun-large-plan-memory", 2e8, "MB", 1e-6)};
  return report;
}

namespace {

constexpr int kIdleRanks = 8;
constexpr double kStartTimeout = 60;
constexpr double kSettleSeconds = 0.5;  // background work of the initialisation may still be running

struct IdleJob {
  pid_t launcher = -1;
  std::vector<pid_t> helpers;  ///< processes other than the launcher's first one and the ranks
  std::vector<pid_t> ranks;
};

struct Measured {
  double value = 0;
  std::string note;
};

// Starts the job, waits until all ranks are idle, measures, and releases the ranks.
Result<Measured> while_idle(Launcher launcher, RankProgram program, const Site& site,
                            const Settings& settings,
                            const std::function<Result<Measured>(MeasuredRun&, const IdleJob&)>& measure) {
  if (const auto absent = why_absent(launcher, program, site)) return fail(ErrorCode::kUnavailable, *absent);
  DDL_ASSIGN(release, make_pipe());
  program.argv.push_back("--hold");
  program.argv.push_back(fmt::format("/proc/{}/fd/{}", ::getpid(), release.first.get()));
  const Command command = launch(launcher, program, site, settings);

  DDL_ASSIGN(child, MeasuredRun::start(command));
  DDL_TRY(child.wait_for_output(kHeldWord, program.ranks, Deadline::after_seconds(kStartTimeout)));
  DDL_TRY(child.stay_running(Deadline::after_seconds(kSettleSeconds)));

  const std::size_t rank_word = command.argv.size() - program.argv.size();
  const std::string rank_program = std::filesystem::canonical(command.argv[rank_word]).native();
  IdleJob job;
  job.launcher = child.pid();
  for (const ProcessId& process : descendants_of(child.pid())) {
    (program_of(process.pid) == rank_program ? job.ranks : job.helpers).push_back(process.pid);
  }
  if (std::ssize(job.ranks) != program.ranks) {
    return fail(ErrorCode::kInternal, fmt::format("found {} of {} ranks", job.ranks.size(), program.ranks));
  }
  auto value = measure(child, job);
  release.second.reset();
  if (!value) return value;
  DDL_TRY(child.finish(Deadline::after_seconds(kStartTimeout)));
  return value;
}

Result<Measured> memory_of(const std::vector<pid_t>& pids) {
  MemoryUse total;
  for (const pid_t pid : pids) {
    DDL_ASSIGN(use, memory_use(pid));
    total.unique += use.unique;
    total.resident += use.resident;
  }
  return Measured{
      static_cast<double>(total.unique),
      fmt::format("unique, of {:.1f} MB resident; 2 idle ranks", static_cast<double>(total.resident) / 1e6)};
}

Result<Measured> helpers_memory(MeasuredRun&, const IdleJob& job) {
  if (job.helpers.empty()) return fail(ErrorCode::kInternal, "found no agent and no spawner");
  return memory_of(job.helpers);
}
Result<Measured> launcher_memory(MeasuredRun&, const IdleJob& job) { return memory_of({job.launcher}); }

Result<double> cpu_of_all(const IdleJob& job) {
  std::vector<pid_t> all = job.ranks;
  all.insert(all.end(), job.helpers.begin(), job.helpers.end());
  all.push_back(job.launcher);
  double total = 0;
  for (const pid_t pid : all) {
    DDL_ASSIGN(seconds, cpu_seconds(pid));
    total += seconds;
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
  const auto idle_share = [window](MeasuredRun& child, const IdleJob& job) -> Result<Measured> {
    DDL_ASSIGN(before, cpu_of_all(job));
    DDL_TRY(child.stay_running(Deadline::after_seconds(window)));
    DDL_ASSIGN(after, cpu_of_all(job));
    return Measured{
        (after - before) / window,
        fmt::format("{} initialised ranks over {} s, all processes of the job", kIdleRanks, window)};
  };
  const RankProgram nothing{{"init_none"}};
  const RankProgram client{{"init_pmix"}};
  const RankProgram ddl{{"init_ddl"}, kIdleRanks};
  const RankProgram named{{"init_ddl_named"}, kIdleRanks};
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
      gauge("ddl-named-idle-cpu", "the same, with named tensors", "cores",
            measured(Launcher::kDdlrun, named, idle_share)),
      gauge("mpi-idle-cpu", "Open MPI under mpirun, idle", "cores",
            measured(Launcher::kMpirun, mpi, idle_share)),
  };
}

}  // namespace ddl::bench
