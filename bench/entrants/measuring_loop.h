// The measuring loop that all entrants of the allreduce benchmark share.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include <fmt/format.h>

#include "base/error.h"
#include "bench/entrants/private_buffer.h"
#include "bench/entrants/rank_job.h"

namespace ddl::bench {

inline constexpr std::chrono::seconds kTimeForOneSize{1};
inline constexpr std::uint64_t kFewestCalls = 4;

/// Whether the entrant sums at all; the floor, which measures the loop itself, does not.
enum class Expect { kSum, kNothing };

/// Calls allreduce(float* data, std::size_t count), which sums in place over the ranks and returns whether that
/// succeeded, for every size of the plan, and leaves each call's seconds on the scoreboard.
///
/// A size that takes longer than its share of time, on a machine that is busy with other things, ends early, but not
/// before kFewestCalls.
///
/// One call: every rank rewrites its whole buffer, so that no entrant finds the other's data still in its cache; all
/// ranks meet; each takes the time around the call. Results are checked: all elements in the warm-ups, three after
/// each measured call.
template <class Allreduce>
Status measure(RankJob& job, Expect expect, Allreduce allreduce) {
  std::uint64_t largest = 0;
  for (const SizePlan& size : job.plan) largest = std::max(largest, size.bytes);
  auto buffer = PrivateBuffer::allocate(largest);
  if (!buffer) return fail(std::move(buffer.error()));
  float* data = buffer->floats();
  const bool may_yield = job.ranks > job.cpus;

  for (std::size_t index = 0; index < job.plan.size(); ++index) {
    const SizePlan& size = job.plan[index];
    const auto count = static_cast<std::size_t>(size.bytes / sizeof(float));
    double* seconds = job.scoreboard.seconds(job.rank, index);
    const auto end_of_time = std::chrono::steady_clock::now() + kTimeForOneSize;
    bool enough = false;
    for (std::uint64_t call = 0; call < size.warm_ups + size.calls && !enough; ++call) {
      // Small whole numbers: their sums are exact in any order.
      const float turn = static_cast<float>(call % 8);
      std::fill_n(data, count, turn + static_cast<float>(job.rank + 1));
      const bool time_is_up =
          call + 1 >= size.warm_ups + kFewestCalls && std::chrono::steady_clock::now() > end_of_time;
      enough = job.scoreboard.meet(job.rank, may_yield, time_is_up);
      const auto started = std::chrono::steady_clock::now();
      const bool succeeded = allreduce(data, count);
      const auto ended = std::chrono::steady_clock::now();
      if (!succeeded)
        return fail(ErrorCode::kSystem, fmt::format("allreduce of {} bytes failed", size.bytes));

      const bool is_warm_up = call < size.warm_ups;
      if (!is_warm_up) seconds[call - size.warm_ups] = std::chrono::duration<double>(ended - started).count();
      if (expect == Expect::kNothing) continue;
      const auto ranks = static_cast<float>(job.ranks);
      const float sum = ranks * turn + ranks * (ranks + 1) / 2;
      const bool is_right = is_warm_up
                                ? std::all_of(data, data + count, [sum](float value) { return value == sum; })
                                : data[0] == sum && data[count / 2] == sum && data[count - 1] == sum;
      if (!is_right) return fail(ErrorCode::kInternal, fmt::format("wrong sum of {} bytes", size.bytes));
    }
  }
  return {};
}

}  // namespace ddl::bench
