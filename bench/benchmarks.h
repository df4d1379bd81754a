// The benchmarks. Each has its entrants in one table at the top of its file.
#pragma once

#include <vector>

#include "bench/report.h"
#include "bench/settings.h"

namespace ddl::bench {

struct Benchmark {
  const char* name;
  const char* what;
  int blocks;  ///< unless told otherwise
  std::vector<Entrant> (*entrants)(const Site&, const Settings&);
  Report (*run)(const Site&, const Settings&);
  int (*hosts_needed)(const Settings&) =
      nullptr;  ///< of the cluster on whose head it runs; null: it needs none
};

/// Whole-process time of starting two ranks, memory of what ddlrun keeps running, idle CPU.
std::vector<Entrant> launch_entrants(const Site& site, const Settings& settings);
Report run_launch(const Site& site, const Settings& settings);

/// f32 sum in place between two ranks, 4 B to 64 MiB.
std::vector<Entrant> allreduce_entrants(const Site& site, const Settings& settings);
Report run_allreduce(const Site& site, const Settings& settings);

/// Whole-process time of starting jobs on few and on many hosts over ssh.
std::vector<Entrant> hosts_entrants(const Site& site, const Settings& settings);
Report run_hosts(const Site& site, const Settings& settings);
int hosts_needed(const Settings& settings);

/// One job of 1024 ranks on 64 hosts: seconds and CPU seconds, compared with nothing.
std::vector<Entrant> large_job_entrants(const Site& site, const Settings& settings);
Report run_large_job(const Site& site, const Settings& settings);
int large_job_hosts_needed(const Settings& settings);

/// All of them.
const std::vector<Benchmark>& benchmarks();

}  // namespace ddl::bench
