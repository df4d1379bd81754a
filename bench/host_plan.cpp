#include "bench/host_plan.h"

#include "bench/blocks.h"
#include "bench/child.h"
#include "bench/machine.h"

namespace ddl::bench {
namespace {

constexpr double kHostTimeout = 300;

Result<RunTimes> run_hosts_once(const Entrant& entrant, const ClusterHosts& hosts) {
  const double cpu_before = hosts.cpu_seconds();
  auto child = Child::start(entrant.command);
  if (!child) return fail(std::move(child.error()));
  const auto cost = child->finish(Deadline::after_seconds(kHostTimeout));
  const auto idle = hosts.wait_until_idle();  // also after a failure: the next entrant begins on empty hosts
  if (!cost) return fail(cost.error());
  if (!idle) return fail(idle.error());
  return RunTimes{{{cost->wall_seconds}}, cost->cpu_seconds + hosts.cpu_seconds() - cpu_before};
}

}  // namespace

std::vector<Entrant> entrants_of(const HostPlan& plan) {
  std::vector<Entrant> entrants;
  for (const HostPlan::Row& row : plan.rows) entrants.push_back(row.entrant);
  return entrants;
}

void run_host_plan(Report& report, const HostPlan& plan, const ClusterHosts& hosts, const Site& site,
                   Settings settings) {
  settings.cpus = allowed_cpus();  // hosts share the machine: nobody is pinned
  report.settings = settings;
  report.method =
      "Wall time of the whole command on the head; CPU time on all hosts, which are namespaces of one "
      "machine.";
  report.machine = describe_machine(site.mpirun);
  report.entrants = entrants_of(plan);
  const LoadWatch watch([&] { return hosts.cpu_seconds(); });
  for (const auto& [name, label] : plan.cases) {
    Case one{.name = name, .label = label};
    std::vector<Entrant*> entrants;
    for (std::size_t i = 0; i < plan.rows.size(); ++i) {
      if (plan.rows[i].of != one.name) continue;
      one.entrants.push_back(report.entrants[i].name);
      entrants.push_back(&report.entrants[i]);
    }
    const auto run = [&](const Entrant& entrant) { return run_hosts_once(entrant, hosts); };
    run_blocks(report.benchmark + ": " + one.label, entrants, settings.blocks, run, {&one});
    compare(one, report.entrants, plan.pairings);
    report.cases.push_back(std::move(one));
  }
  report.other_load = watch.other_load();
}

}  // namespace ddl::bench
