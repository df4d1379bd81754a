#include "bench/cpu_distance.h"

#include <atomic>
#include <chrono>
#include <thread>

#include "base/cpu_set.h"
#include "bench/scoreboard.h"

namespace ddl::bench {
namespace {

/// Between two measurements of CPUs that a virtual machine may move.
constexpr std::chrono::milliseconds kPause{50};

}  // namespace

Distance distance_of(const std::vector<int>& cpus) {
  const auto ranks = static_cast<int>(cpus.size());
  auto board = Scoreboard::create(ranks, {{.bytes = 4, .calls = 1, .warm_ups = 0}});
  if (ranks < 2 || !board) return Distance::kUnknown;
  std::atomic<bool> is_bound = true;
  {
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < ranks; ++rank) {
      threads.emplace_back([&, rank] {
        if (CpuSet::of({cpus[static_cast<std::size_t>(rank)]}).bind_this_thread() != 0) is_bound = false;
        board->barrier(rank, Wait::kYield);
        if (is_bound) board->record_distance(rank, 0, 0);
      });
    }
  }
  return is_bound ? board->distance_before(0, 0) : Distance::kUnknown;
}

std::vector<int> far_cpus(const std::vector<int>& allowed, int ranks, Deadline deadline) {
  const auto wanted = static_cast<std::size_t>(ranks);
  if (allowed.size() <= wanted) return allowed;
  do {
    for (const int first : allowed) {
      std::vector<int> cpus{first};
      for (const int other : allowed) {
        if (cpus.size() < wanted && other != first && distance_of({first, other}) == Distance::kFar)
          cpus.push_back(other);
      }
      if (cpus.size() == wanted) return cpus;
    }
    std::this_thread::sleep_for(kPause);
  } while (!deadline.has_passed());
  return {allowed.begin(), allowed.begin() + ranks};
}

bool wait_until_far(const std::vector<int>& cpus, Deadline deadline) {
  while (distance_of(cpus) != Distance::kFar) {
    if (deadline.has_passed()) return false;
    std::this_thread::sleep_for(kPause);
  }
  return true;
}

}  // namespace ddl::bench
