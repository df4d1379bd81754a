// How a rank waits for others: how long it spins before it sleeps, and when it gives up connecting.
#pragma once

#include <chrono>

#include "base/deadline.h"

namespace ddl::runtime {

// How long a wait looks, yields and then sleeps.

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

// When ranks that are being connected are waited for no longer.

/// Beside the time that a transport takes at most.
struct ConnectLimit {
  /// Of the call that needs the connections.
  Deadline deadline = Deadline::never();
  /// A descriptor that is readable once those who connect have been aborted; -1: they have nothing in common yet.
  int doorbell = -1;

  Deadline sooner(Deadline other) const { return deadline.when() < other.when() ? deadline : other; }
};

}  // namespace ddl::runtime
