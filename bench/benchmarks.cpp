#include "bench/benchmarks.h"

namespace ddl::bench {

const std::vector<Benchmark>& benchmarks() {
  static const std::vector<Benchmark> all = {
      {"launch", "starting and ending a job of 2 ranks, and what it costs while idle", 20, launch_entrants,
       run_launch},
      {"allreduce", "f32 sum in place between 2 ranks, 4 B to 64 MiB", 10, allreduce_entrants, run_allreduce},
      {"hosts", "starting and ending jobs over ssh on 4 and on 32 hosts, on a cluster of its own; as root", 8,
       hosts_entrants, run_hosts, hosts_needed},
      {"large-job", "one job of 64 hosts x 16 ranks, on a cluster of its own; as root", 1, large_job_entrants,
       run_large_job, large_job_hosts_needed},
  };
  return all;
}

}  // namespace ddl::bench
