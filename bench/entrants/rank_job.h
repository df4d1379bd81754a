// What every rank program of the benchmarks of collectives does before its library starts: options and pinning.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "base/error.h"
#include "bench/collective.h"
#include "bench/gradients.h"
#include "bench/scoreboard.h"

namespace ddl::bench {

/// What the ranks do: one collective in all sizes, or the training steps of a model.
using Work = std::variant<Collective, Model>;

/// The rank's part of the job, from its command line: WORK RANKS HOSTS CPUS PLAN FOLDER SCOREBOARD.
struct RankJob {
  Work work;
  int rank = 0;  ///< as the launcher says it: PMIX_RANK, or DDL_BENCH_RANK under spawn_floor
  int ranks = 0;
  int hosts = 0;  ///< of equally many ranks each, in rank order
  int cpus = 0;   ///< how many the ranks share; rank r is pinned to number r modulo this
  std::vector<SizePlan> plan;
  std::string folder;  ///< empty at the start of a run, seen by all ranks, and removed by the harness
  Scoreboard scoreboard;

  /// The library works in threads of its own: they need CPUs of the others, and not to be kept from them by a rank that
  /// waits. So the rank may run on all CPUs of the job, and sleeps while it waits.
  bool has_threads = false;

  Wait wait() const { return has_threads ? Wait::kSleep : ranks > cpus ? Wait::kYield : Wait::kSpin; }
};

/// Reads the command line and the rank, and pins the process to its CPU, or to all CPUs of the job if it has threads. To be called before the library is
/// initialised, so that the library's threads inherit the pinning whatever the library is.
Result<RankJob> join_benchmark(int argc, char** argv, bool has_threads = false);

/// Prints the error and returns the exit code for it.
int fail_rank(const Error& error);

/// Fails unless the library sees the same job as the launcher, for a world of one would be very fast, and has left
/// the process on its CPU.
Status check_world(const RankJob& job, int rank, int size);

}  // namespace ddl::bench
