// The benchmark "allreduce".
#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "bench/benchmarks.h"
#include "bench/blocks.h"
#include "bench/child.h"
#include "bench/launchers.h"
#include "bench/scoreboard.h"

namespace ddl::bench {
namespace {

constexpr double kRunTimeout = 120;

// Open MPI's temporary buffers otherwise come from fresh pages in every call, and go back after it.
const std::vector<std::pair<std::string, std::string>> kMallocTuned = {
    {"MALLOC_MMAP_THRESHOLD_", "1073741824"},
    {"MALLOC_TRIM_THRESHOLD_", "2147483647"},
    {"MALLOC_TOP_PAD_", "268435456"}};

struct Row {
  Entrant entrant;
  Launcher launcher;
  const char* program;
  std::vector<std::pair<std::string, std::string>> environment = {};
};

// Who is measured; the order is that of the table and the chart.
std::vector<Row> rows() {
  using enum Launcher;
  return {
      {{.name = "ddl", .label = "libddl", .why = "ours, with private buffers", .is_ours = true},
       kDdlrun,
       "allreduce_ddl"},
      {{.name = "ddl-again", .label = "libddl, again", .why = "A/A", .again_of = "ddl", .is_ours = true},
       kDdlrun,
       "allreduce_ddl"},
      {{.name = "openmpi", .label = "Open MPI", .why = "as most people run it"}, kMpirun, "allreduce_mpi"},
      {{.name = "openmpi-malloc",
        .label = "Open MPI, malloc tuned",
        .why = "its temporary buffers keep their pages: its best honest setting for large messages"},
       kMpirun,
       "allreduce_mpi",
       kMallocTuned},
      {{.name = "floor",
        .label = "empty loop",
        .why = "the measuring loop without a call: no entrant can be faster"},
       kFloor,
       "allreduce_none"},
  };
}

const std::vector<Pairing> kPairings = {{"ddl", "openmpi"}, {"ddl", "openmpi-malloc"}};

// Enough calls for a steady median, and little enough that a block takes seconds and not minutes.
std::vector<SizePlan> size_plan(bool quick) {
  std::vector<SizePlan> plan;
  for (const std::uint64_t bytes :
       {std::uint64_t{4}, std::uint64_t{64}, std::uint64_t{1} << 10, std::uint64_t{4} << 10,
        std::uint64_t{16} << 10, std::uint64_t{64} << 10, std::uint64_t{256} << 10, std::uint64_t{1} << 20,
        std::uint64_t{4} << 20, std::uint64_t{16} << 20, std::uint64_t{64} << 20}) {
    const std::uint64_t traffic = std::uint64_t{512} << 20;
    SizePlan size{bytes, std::clamp<std::uint64_t>(traffic / bytes, 8, 2000), 0};
    if (quick) size.calls = std::min<std::uint64_t>(size.calls, 4);
    size.warm_ups = std::max<std::uint64_t>(size.calls / 10, 2);
    if (!quick || bytes <= (std::uint64_t{1} << 20)) plan.push_back(size);
  }
  return plan;
}

std::string cpu_list(const Settings& settings) {
  std::vector<std::string> cpus;
  for (const int cpu : settings.cpus) cpus.push_back(std::to_string(cpu));
  return join(cpus, ",");
}

}  // namespace

std::vector<Entrant> allreduce_entrants(const Site& site, const Settings& settings) {
  std::vector<Entrant> entrants;
  for (Row& row : rows()) {
    const RankProgram program{.argv = {row.program, std::to_string(kRanks), cpu_list(settings),
                                       plan_text(size_plan(settings.quick))},
                              .environment = row.environment};
    row.entrant.command = launch(row.launcher, program, site, settings);
    row.entrant.absent = why_absent(row.launcher, program, site);
    entrants.push_back(std::move(row.entrant));
  }
  return entrants;
}

Report run_allreduce(const Site& site, const Settings& settings) {
  Report report;
  report.benchmark = "allreduce";
  report.title = "allreduce: f32 sum in place, 2 ranks on one host, each pinned to a CPU of its own";
  report.method =
      "Time of one call on the slowest rank; before each call every rank rewrites its whole buffer and all "
      "meet.";
  report.settings = settings;
  report.machine = describe_machine(site.mpirun);
  report.entrants = allreduce_entrants(site, settings);

  const std::vector<SizePlan> plan = size_plan(settings.quick);
  std::vector<Entrant*> entrants;
  for (Entrant& entrant : report.entrants) entrants.push_back(&entrant);
  std::vector<Case*> cases;
  report.cases.reserve(plan.size());
  for (const SizePlan& size : plan) {
    report.cases.push_back(
        {.name = std::to_string(size.bytes), .label = size_text(size.bytes), .bytes = size.bytes});
    for (const Entrant& entrant : report.entrants) report.cases.back().entrants.push_back(entrant.name);
    cases.push_back(&report.cases.back());
  }

  const auto run_once = [&](const Entrant& entrant) -> Result<RunTimes> {
    auto scoreboard = Scoreboard::create(kRanks, plan);
    if (!scoreboard) return fail(std::move(scoreboard.error()));
    Command command = entrant.command;
    command.argv.push_back(scoreboard->path());
    auto child = Child::start(command);
    if (!child) return fail(std::move(child.error()));
    const auto cost = child->finish(Deadline::after_seconds(kRunTimeout));
    if (!cost) return fail(cost.error());
    RunTimes times{{}, cost->cpu_seconds};
    for (std::size_t i = 0; i < plan.size(); ++i) times.by_case.push_back(scoreboard->slowest_rank(i));
    return times;
  };
  const LoadWatch watch;
  run_blocks(report.benchmark, entrants, settings.blocks, run_once, cases);
  report.other_load = watch.other_load();
  for (Case& one : report.cases) compare(one, report.entrants, kPairings);
  return report;
}

}  // namespace ddl::bench
