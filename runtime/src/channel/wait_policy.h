// How long a wait looks, yields and then sleeps.
#pragma once

#include <chrono>

namespace ddl::runtime {

/// A wait spins while there is a CPU for every rank, yields a few times, then sleeps in the kernel. With more ranks
/// than CPUs spinning only keeps the awaited rank from running.
struct WaitPolicy {
  std::chrono::nanoseconds spin{0};
  int yields = 0;

  static WaitPolicy for_group(int ranks, int cpus, std::chrono::nanoseconds spin) {
    if (ranks <= cpus) return {spin, 0};
    return {std::chrono::nanoseconds(0), 16};
  }
};

}  // namespace ddl::runtime
