// What every rank program of the benchmarks of collectives shares: it reads its part of the job and pins itself before its
// library starts, and then measures the library's calls in one loop that is the same for all.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "base/error.h"
#include "bench/scoreboard.h"
#include "bench/workload.h"

namespace ddl::bench {

// What every rank program of the benchmarks of collectives does before its library starts: options and pinning.

/// What the ranks do: one collective in all sizes, or the training steps of a model.
using Work = std::variant<Collective, Model>;

/// The rank's part of the job, from its command line: WORK RANKS HOSTS CPUS PLAN FOLDER SCOREBOARD.
struct RankJob {
  Work work;
  int rank = 0;  ///< as the launcher says it: PMIX_RANK, or DDL_BENCH_RANK under launch_floor
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

// The measuring loop that all contenders of the benchmarks of collectives share.

/// What one call works on. In place recv is send.
struct Buffers {
  float* send = nullptr;
  float* recv = nullptr;
  std::size_t count = 0;  ///< elements of the larger of the two
  std::size_t part = 0;   ///< a rank's share of them
};

/// Makes one call and returns where its result lies: recv, unless the library leaves it elsewhere; null if it failed.
using Call = std::function<const float*(Collective what, const Buffers& buffers)>;

/// Memory for one buffer, on every rank in the same order. It lives longer than the measurement.
using Allocate = std::function<Result<float*>(std::size_t bytes)>;

/// Whether the contender moves the data; the floor, which measures the loop itself, and a plain stream do not.
enum class Expect { kResults, kNothing };

/// Does the job's work with call, for every size of the plan, and leaves each call's seconds on the scoreboard; of a model,
/// each training step's.
///
/// A size that takes longer than its share of time, on a machine that is busy with other things, ends early, but not
/// before a few calls.
///
/// One call: every rank rewrites its whole buffers, so that no contender finds the other's data still in its cache; all
/// ranks meet; each takes the time around the call. Results are checked: all elements in the warm-ups, three of each part
/// after each measured call.
///
/// One step of a model reduces all its gradients, in the order in which training computes them, the last layer first. What
/// it takes to copy them into buckets and back belongs to it; a gradient that is alone in its bucket is reduced in place.
Status measure(RankJob& job, Expect expect, const Allocate& allocate, const Call& call);

/// The same, in private memory.
Status measure(RankJob& job, Expect expect, const Call& call);

}  // namespace ddl::bench
