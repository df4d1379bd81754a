// The benchmarks of single collectives over the message size: "allreduce" and its siblings.
#include <string>
#include <vector>

#include <fmt/format.h>

#include "bench/benchmarks.h"
#include "bench/peers.h"
#include "bench/rank_runs.h"
#include "bench/report.h"
#include "bench/settings.h"
#include "bench/workload.h"

namespace ddl::bench {
namespace {

constexpr int kBlocks = 10;

// Wanted sizes that round up to the same size are measured once.
RankWork work_of(Collective what, const Settings& settings) {
  std::vector<std::uint64_t> sizes;
  for (const std::uint64_t wanted : settings.job.sizes.empty() ? default_sizes() : settings.job.sizes) {
    const std::uint64_t bytes = whole_bytes(what, wanted, settings.job.ranks);
    if (sizes.empty() || sizes.back() < bytes) sizes.push_back(bytes);
  }
  return {name_of(what), plan_of_sizes(sizes, settings.quick)};
}

// Horovod takes 1,070 us by its own record, on another machine.
void add_aim_of_named(Report& report) {
  constexpr double kLimit = 10e-6;
  for (const Case& one : report.cases) {
    const Figures* const named = one.figures_of("ddl-named");
    if (named == nullptr || one.bytes != sizeof(float) || report.settings.job.ranks != 2) continue;
    report.aims.push_back(
        {fmt::format("{}one named tensor of 4 B takes at most 10 us (Horovod's record: 1,070 us)",
                     one.distance ? fmt::format("{}: ", name_of(*one.distance)) : ""),
         time_text(named->p50()), named->p50() <= kLimit});
  }
}

Report run_collective(Collective what, const Site& site, const Settings& settings) {
  const RankWork work = work_of(what, settings);
  Report report;
  report.benchmark = name_of(what);
  report.title = fmt::format("{}: {}, {}", name_of(what), describe(what), job_text(settings.job));
  report.method =
      "Time of one call on the slowest rank, each pinned to one CPU; before each call every rank rewrites "
      "its whole buffers, the time of a cache line between the CPUs is measured, and all meet.";
  report.settings = settings;
  for (const SizePlan& size : work.plan) {
    report.cases.push_back(
        {.name = std::to_string(size.bytes), .label = size_text(size.bytes), .bytes = size.bytes});
  }
  run_ranks(report, work, site);
  if (what == Collective::kAllreduce && settings.job.hosts == 1) add_aim_of_named(report);
  return report;
}

}  // namespace

std::vector<Benchmark> collective_benchmarks() {
  std::vector<Benchmark> all;
  for (const Collective what : all_collectives()) {
    all.push_back(
        {name_of(what), fmt::format("{}, over the message size", describe(what)), kBlocks,
         [what](const Site& site, const Settings& settings) {
           return contenders_of(work_of(what, settings), site, settings);
         },
         [what](const Site& site, const Settings& settings) { return run_collective(what, site, settings); },
         [](const Settings& settings) { return settings.job.hosts > 1 ? settings.job.hosts : 0; }, true});
  }
  return all;
}

}  // namespace ddl::bench
