// How a rank waits for others: how long it spins before it sleeps, and when it gives up connecting.
#pragma once

#include <chrono>

#include "base/deadline.h"

namespace ddl::runtime {

// How long a wait spins, yields and then sleeps.

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

// How long a rank waits for the others while connections are made.

/// In addition to the transport's own time limit.
struct ConnectLimit {
  /// The deadline of the call that needs the connections.
  Deadline deadline = Deadline::never();
  /// A descriptor that is readable once the connecting ranks have been aborted; -1: they have no abort in common yet.
  int doorbell = -1;

  Deadline sooner(Deadline other) const { return deadline.when() < other.when() ? deadline : other; }
};

}  // namespace ddl::runtime
