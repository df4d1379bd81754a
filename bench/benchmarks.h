// The list of the benchmarks: their contenders, and how to run each of them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "bench/report.h"
#include "bench/settings.h"

namespace ddl::bench {

struct Benchmark {
  std::string name;
  std::string what;
  int blocks;  ///< the default of --blocks
  std::function<std::vector<Contender>(const Site&, const Settings&)> contenders;
  std::function<Report(const Site&, const Settings&)> run;
  /// The number of hosts of the cluster on whose head it runs; 0, or a null function: no cluster.
  std::function<int(const Settings&)> hosts_needed = nullptr;
  bool has_job = false;      ///< whether it takes a JobShape from its user
  bool needs_slurm = false;  ///< whether the cluster must have a Slurm
};

/// Whole-process time of starting two ranks, memory of the launchers' own processes, idle CPU.
std::vector<Contender> launch_contenders(const Site& site, const Settings& settings);
Report run_launch(const Site& site, const Settings& settings);

/// One benchmark for each collective, over the message size.
std::vector<Benchmark> collective_benchmarks();

/// Training steps: all gradients of a model, in several ways, and while the program computes.
std::vector<Benchmark> step_benchmarks();

/// Whole-process time of starting jobs on few and on many hosts over ssh.
std::vector<Contender> hosts_contenders(const Site& site, const Settings& settings);
Report run_hosts(const Site& site, const Settings& settings);
int hosts_needed(const Settings& settings);

/// One job of 1024 ranks on 64 hosts: seconds and CPU seconds. It has no comparison.
std::vector<Contender> large_job_contenders(const Site& site, const Settings& settings);
Report run_large_job(const Site& site, const Settings& settings);
int large_job_hosts_needed(const Settings& settings);

/// Whole-process time of starting jobs in a Slurm allocation.
std::vector<Contender> slurm_contenders(const Site& site, const Settings& settings);
Report run_slurm(const Site& site, const Settings& settings);
int slurm_hosts_needed(const Settings& settings);

/// All of them.
const std::vector<Benchmark>& benchmarks();

}  // namespace ddl::bench
