// Shared by all rank programs of the benchmarks of collectives: a program reads its part of the job and pins itself
// before its library is initialised, and then measures the library's calls in one loop, which is the same for all.
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

/// What the ranks do: one collective in all sizes, or the training steps of a model.
using Work = std::variant<Collective, Model>;

/// The rank's part of the job, from its command line: WORK RANKS HOSTS CPUS PLAN FOLDER SCOREBOARD. CPUS is a list
/// of sets of CPUs such as 0,1 or 0+1,2+3.
struct RankJob {
  Work work;
  int rank = 0;  ///< as the launcher numbers it: PMIX_RANK, or DDL_BENCH_RANK under launch_floor
  int ranks = 0;
  int hosts = 0;     ///< with the same number of ranks on each, in rank order
  int cpu_sets = 0;  ///< the length of the list CPUS; rank r is pinned to element r modulo this
  int cpus = 0;      ///< that this rank is pinned to
  std::vector<SizePlan> plan;
  std::string folder;  ///< empty at the start of a run, seen by all ranks, and removed by the harness
  Scoreboard scoreboard;

  /// Whether the library has threads of its own. They need CPUs, and a waiting rank must not keep these busy. So the
  /// rank may run on all CPUs of the job, and sleeps while it waits.
  bool has_threads = false;

  /// Whether every rank has CPUs of its own, so that it makes sense to ask how far apart they are.
  bool has_distances() const { return hosts == 1 && ranks > 1 && ranks <= cpu_sets && !has_threads; }
  Wait wait() const { return has_threads ? Wait::kSleep : ranks > cpu_sets ? Wait::kYield : Wait::kSpin; }
};

/// Reads the command line and the rank, and pins the process to its CPUs, or to all CPUs of the job if it has threads.
/// To be called before the library is initialised, so that the library's threads inherit the pinning.
Result<RankJob> join_benchmark(int argc, char** argv, bool has_threads = false);

/// Prints the error and returns the exit code for it.
int fail_rank(const Error& error);

/// Fails unless the library sees the rank and the size that the launcher gave, because a world of one would be very
/// fast, and has not changed the pinning.
Status check_world(const RankJob& job, int rank, int size);

/// The buffers of one call. For a collective in place recv is send.
struct Buffers {
  float* send = nullptr;
  float* recv = nullptr;
  std::size_t count = 0;  ///< elements of the larger of the two
  std::size_t part = 0;   ///< a rank's share of them
};

/// Makes one call and returns the address of its result: recv, unless the library puts it elsewhere; null if the call
/// failed.
using Call = std::function<const float*(Collective what, const Buffers& buffers)>;

/// Completes the calls that have only been submitted, at the end of what is timed: one call, or all gradients of a
/// step. Returns whether all succeeded.
using Complete = std::function<bool()>;

/// Allocates one buffer; called on every rank in the same order. The memory outlives the measurement.
using Allocate = std::function<Result<float*>(std::size_t bytes)>;

/// Whether the calls have results, which are then checked. The floor, which measures the loop itself, and the plain
/// stream have none.
enum class Expect { kResults, kNothing };

/// Does the job's work with call, for every size of the plan, and writes each call's seconds to the scoreboard; for a
/// model, the seconds of each training step.
///
/// A size that takes more than a second, such as on a machine that is busy with other programs, ends early, but not
/// before four measured calls.
///
/// One call: every rank rewrites its whole buffers, so that no contender finds the data of other ranks still in its
/// cache; all ranks pass a barrier; each takes the time of its call. Results are checked: all elements in the
/// warm-ups, three of each part after each measured call.
///
/// One step of a model reduces all its gradients, in the order in which training computes them, the last layer first.
/// The time of copies into buckets and back is included; a gradient that is alone in its bucket is reduced in place. Of
/// kInOneBuffer and kWhileComputing (bench/workload.h) the time of the computing is included, too.
Status measure(RankJob& job, Expect expect, const Allocate& allocate, const Call& call);

/// The same, in private memory.
Status measure(RankJob& job, Expect expect, const Call& call);

/// Who packs the gradients of a step into buckets.
enum class Buckets {
  kOfHarness,  ///< the plan says of which size; a bucket is copied back when all calls of the step are complete
  kOfLibrary,  ///< it gets every gradient by itself, whatever the plan says
};

/// The same, in private memory, for a library to which calls are submitted.
Status measure(RankJob& job, Expect expect, Buckets buckets, const Call& submit, const Complete& complete);

}  // namespace ddl::bench
