#include "bench/benchmarks.h"

namespace ddl::bench {

const std::vector<Benchmark>& benchmarks() {
  static const std::vector<Benchmark> all = {
      {"launch", "starting and ending a job of 2 ranks, and what it costs while idle", 20, launch_entrants,
       run_launch},
      {"allreduce", "f32 sum in place between 2 ranks, 4 B to 64 MiB", 10, allreduce_entrants, run_allreduce},
  };
  return all;
}

}  // namespace ddl::bench
