// The measuring loop that all entrants of the benchmarks of collectives share.
#pragma once

#include <cstddef>
#include <functional>

#include "base/error.h"
#include "bench/collective.h"
#include "bench/entrants/rank_job.h"

namespace ddl::bench {

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

/// Whether the entrant moves the data; the floor, which measures the loop itself, and a plain stream do not.
enum class Expect { kResults, kNothing };

/// Does the job's work with call, for every size of the plan, and leaves each call's seconds on the scoreboard; of a model,
/// each training step's.
///
/// A size that takes longer than its share of time, on a machine that is busy with other things, ends early, but not
/// before a few calls.
///
/// One call: every rank rewrites its whole buffers, so that no entrant finds the other's data still in its cache; all
/// ranks meet; each takes the time around the call. Results are checked: all elements in the warm-ups, three of each part
/// after each measured call.
///
/// One step of a model reduces all its gradients, in the order in which training computes them, the last layer first. What
/// it takes to copy them into buckets and back belongs to it; a gradient that is alone in its bucket is reduced in place.
Status measure(RankJob& job, Expect expect, const Allocate& allocate, const Call& call);

/// The same, in private memory.
Status measure(RankJob& job, Expect expect, const Call& call);

}  // namespace ddl::bench
