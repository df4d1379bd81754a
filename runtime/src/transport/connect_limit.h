// When ranks that are being connected are waited for no longer.
#pragma once

#include "base/deadline.h"

namespace ddl::runtime {

/// Beside the time that a transport takes at most.
struct ConnectLimit {
  /// Of the call that needs the connections.
  Deadline deadline = Deadline::never();
  /// A descriptor that is readable once those who connect have been aborted; -1: they have nothing in common yet.
  int doorbell = -1;

  Deadline sooner(Deadline other) const { return deadline.when() < other.when() ? deadline : other; }
};

}  // namespace ddl::runtime
