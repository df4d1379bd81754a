// The benchmark "launch".
#include "bench/aims.h"
#include "bench/benchmarks.h"
#include "bench/blocks.h"
#include "bench/child.h"
#include "bench/idle_job.h"
#include "bench/launchers.h"
#include "bench/planning.h"

namespace ddl::bench {
namespace {

constexpr double kLaunchTimeout = 30;

// Skips the search for network fabrics, which a job on one host does not need.
const std::vector<std::string> kSharedMemoryOnly = {"--mca", "pml", "ob1", "--mca", "btl", "self,vader"};

struct LaunchRow {
  const char* of;  ///< the case
  Entrant entrant;
  Launcher launcher;
  RankProgram program;
};

// Who is measured. Within a case the order is that of the table and the chart.
std::vector<LaunchRow> launch_rows() {
  using enum Launcher;
  return {
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
        .why = "told not to look for network fabrics: its best honest setting on one host"},
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
}

const std::vector<Pairing> kPairings = {
    {"true-ddlrun", "true-mpirun"},         {"pmix-ddlrun", "pmix-mpirun"},
    {"init-ddl-ddlrun", "init-mpi-mpirun"}, {"init-ddl-ddlrun", "init-mpi-mpirun-tuned"},
    {"init-mpi-ddlrun", "init-mpi-mpirun"},
};

const std::vector<std::pair<const char*, const char*>> kCases = {
    {"true", "/bin/true"}, {"pmix", "PMIx client"}, {"init", "init + finalize"}};

Result<RunTimes> run_once(const Entrant& entrant) {
  auto child = Child::start(entrant.command);
  if (!child) return fail(std::move(child.error()));
  const auto cost = child->finish(Deadline::after_seconds(kLaunchTimeout));
  if (!cost) return fail(cost.error());
  return RunTimes{{{cost->wall_seconds}}, cost->cpu_seconds};
}

}  // namespace

std::vector<Entrant> launch_entrants(const Site& site, const Settings& settings) {
  std::vector<Entrant> entrants;
  for (LaunchRow& row : launch_rows()) {
    row.entrant.command = launch(row.launcher, row.program, site, settings);
    row.entrant.absent = why_absent(row.launcher, row.program, site);
    entrants.push_back(std::move(row.entrant));
  }
  return entrants;
}

Report run_launch(const Site& site, const Settings& settings) {
  Report report;
  report.benchmark = "launch";
  report.title = "launch: starting and ending a job of 2 ranks";
  report.method = "Wall time of the whole command, from before its spawn until it has been reaped.";
  report.settings = settings;
  report.machine = describe_machine(site.mpirun);
  report.entrants = launch_entrants(site, settings);
  const std::vector<LaunchRow> table = launch_rows();
  const LoadWatch watch;
  for (const auto& [name, label] : kCases) {
    Case one{.name = name, .label = label};
    std::vector<Entrant*> entrants;
    for (std::size_t i = 0; i < table.size(); ++i) {
      if (table[i].of != one.name) continue;
      one.entrants.push_back(report.entrants[i].name);
      entrants.push_back(&report.entrants[i]);
    }
    run_blocks(report.benchmark + " " + one.label, entrants, settings.blocks, run_once, {&one});
    compare(one, report.entrants, kPairings);
    report.cases.push_back(std::move(one));
  }
  report.gauges = idle_job_gauges(site, settings);
  report.gauges.push_back(planning_gauge(settings));
  report.other_load = watch.other_load();
  report.aims = {
      ratio_aim(report, "ddlrun starts /bin/true no slower than mpirun", {"true-ddlrun", "true-mpirun"}, 1),
      ratio_aim(report, "libddl's init + finalize takes at most 0.4x of Open MPI's",
                {"init-ddl-ddlrun", "init-mpi-mpirun"}, 0.4),
      gauge_aim(report, "agent and spawner have less than 5 MB of unique memory, PMIx clients connected",
                "ddlrun-agent-and-spawner-memory-with-pmix", 5e6, "MB", 1e-6),
      gauge_aim(report, "an idle job of 8 ranks uses less than 0.01% of a core", "ddl-idle-cpu", 0.0001, "%",
                100),
      gauge_aim(report, "planning a node of 256 CPUs and 8 GPUs takes less than 10 ms", "ddlrun-planning",
                0.01, "ms", 1000)};
  return report;
}

}  // namespace ddl::bench
