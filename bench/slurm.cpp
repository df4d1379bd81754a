// The benchmark "slurm": jobs in an allocation of Slurm's. It runs on the head of a cluster with Slurm.
#include <cstdlib>

#include <fmt/format.h>

#include "base/process.h"
#include "bench/aims.h"
#include "bench/benchmarks.h"
#include "bench/host_plan.h"
#include "bench/launchers.h"

namespace ddl::bench {
namespace {

constexpr int kHosts = 4;
constexpr int kSlurmRanksPerHost = 2;

enum class Starter { kDdlrun, kSrun, kMpirun };

/// salloc is part of every command, as it is of every interactive job.
Entrant entrant_of(Entrant entrant, Starter starter, const std::string& program, const Site& site) {
  const char* path = std::getenv("PATH");
  const auto salloc = find_in_path("salloc", path != nullptr ? path : "");
  if (!salloc) entrant.absent = "salloc is not in PATH";
  std::vector<std::string> words = {salloc.value_or("salloc"),
                                    "-Q",
                                    "-N",
                                    std::to_string(kHosts),
                                    "-n",
                                    std::to_string(kHosts * kSlurmRanksPerHost),
                                    "--ntasks-per-node=" + std::to_string(kSlurmRanksPerHost)};
  switch (starter) {
    case Starter::kDdlrun: words.push_back(site.ddlrun); break;
    case Starter::kSrun: words.insert(words.end(), {"srun", "--mpi=pmix"}); break;
    case Starter::kMpirun:
      words.push_back(site.mpirun);
      if (site.is_root) words.emplace_back("--allow-run-as-root");
      if (site.mpirun.empty()) entrant.absent = "mpirun is not in PATH";
      break;
  }
  words.push_back(site.programs + "/" + program);
  entrant.command = {words, {}, {}};
  return entrant;
}

void add_case(HostPlan& plan, const Site& site, const std::string& name, const std::string& program,
              const std::string& label) {
  const auto add = [&](Entrant entrant, Starter starter) {
    plan.rows.push_back({name, entrant_of(std::move(entrant), starter, program, site)});
  };
  add({.name = name + "-ddlrun", .label = "ddlrun", .why = "ours", .is_ours = true}, Starter::kDdlrun);
  add({.name = name + "-ddlrun-again",
       .label = "ddlrun, again",
       .why = "A/A",
       .again_of = name + "-ddlrun",
       .is_ours = true},
      Starter::kDdlrun);
  add({.name = name + "-srun", .label = "srun --mpi=pmix", .why = "Slurm's own, as sites advise it"},
      Starter::kSrun);
  add({.name = name + "-mpirun", .label = "mpirun", .why = "which starts its daemons by srun"},
      Starter::kMpirun);
  plan.pairings.push_back({name + "-ddlrun", name + "-srun"});
  plan.pairings.push_back({name + "-ddlrun", name + "-mpirun"});
  plan.cases.emplace_back(name, fmt::format("{}, {} hosts x {} ranks", label, kHosts, kSlurmRanksPerHost));
}

HostPlan slurm_plan(const Site& site) {
  HostPlan plan;
  add_case(plan, site, "pmix", "init_pmix", "PMIx_Init and PMIx_Finalize");
  add_case(plan, site, "mpi", "init_mpi", "MPI_Init and MPI_Finalize");
  return plan;
}

}  // namespace

int slurm_hosts_needed(const Settings&) { return kHosts; }

std::vector<Entrant> slurm_entrants(const Site& site, const Settings&) {
  return entrants_of(slurm_plan(site));
}

Report run_slurm(const Site& site, const Settings& settings) {
  const ClusterHosts hosts(kHosts);
  Report report;
  report.benchmark = "slurm";
  report.title = "slurm: salloc, and a job in it";
  run_host_plan(report, slurm_plan(site), hosts, site, settings);
  report.aims = {ratio_aim(report, "a PMIx program takes at most 1.2x of srun --mpi=pmix",
                           {"pmix-ddlrun", "pmix-srun"}, 1.2),
                 ratio_aim(report, "and less than under mpirun", {"pmix-ddlrun", "pmix-mpirun"}, 1.0)};
  return report;
}

}  // namespace ddl::bench
