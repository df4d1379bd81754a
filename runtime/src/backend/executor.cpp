#include "runtime/src/backend/executor.h"

namespace ddl::runtime {

Outcome Executor::busy() {
  return failed(DDL_ERROR_BUSY, "another thread is inside a call of this process set");
}

Outcome Executor::check_usable(const CallLock& lock) const {
  if (is_in_forked_child()) return tl::unexpected(inherited_by_fork());
  if (!lock.held()) return busy();
  if (is_closed_) return failed(DDL_ERROR_INVALID_ARGUMENT, "this process set has been freed");
  if (ended_by_) return failed(DDL_ERROR_ABORTED, "the context was aborted earlier: " + *ended_by_);
  return {};
}

Outcome Executor::note(Outcome outcome) {
  // A mismatch that all ranks have found, or an error about this rank's own arguments, does not end the set. One that was
  // found beside data on their way has aborted it.
  const bool has_only_mismatch =
      !outcome && outcome.error().status == DDL_ERROR_MISMATCH && !connections_.abort().is_raised();
  if (outcome || has_only_mismatch || outcome.error().status == DDL_ERROR_INVALID_ARGUMENT ||
      outcome.error().status == DDL_ERROR_UNSUPPORTED || outcome.error().status == DDL_ERROR_BOOTSTRAP) {
    return outcome;
  }
  connections_.report_abort();
  ended_by_ = outcome.error().message;
  return outcome;
}

}  // namespace ddl::runtime
