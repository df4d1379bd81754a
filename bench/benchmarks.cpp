#include "bench/benchmarks.h"

namespace ddl::bench {
namespace {

std::vector<Benchmark> make_benchmarks() {
  std::vector<Benchmark> all = {{"launch",
                                 "starting and ending a job of 2 ranks, and what it costs while idle", 20,
                                 launch_contenders, run_launch}};
  for (Benchmark& one : collective_benchmarks()) all.push_back(std::move(one));
  for (Benchmark& one : step_benchmarks()) all.push_back(std::move(one));
  all.push_back({"hosts",
                 "starting and ending jobs over ssh on 4 and on 32 hosts, on a cluster of its own; as root",
                 8, hosts_contenders, run_hosts, hosts_needed});
  all.push_back(
      {.name = "slurm",
       .what = "salloc and a job in it, by ddlrun, srun and mpirun, on a cluster of its own; as root",
       .blocks = 8,
       .contenders = slurm_contenders,
       .run = run_slurm,
       .hosts_needed = slurm_hosts_needed,
       .needs_slurm = true});
  all.push_back({"large-job", "one job of 64 hosts x 16 ranks, on a cluster of its own; as root", 1,
                 large_job_contenders, run_large_job, large_job_hosts_needed});
  return all;
}

}  // namespace

const std::vector<Benchmark>& benchmarks() {
  static const std::vector<Benchmark> all = make_benchmarks();
  return all;
}

}  // namespace ddl::bench
