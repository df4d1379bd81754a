// What signals do: how a wait of one of the program's threads ends because the program wants that
// (ddl_set_interrupt_check()), and which SIGTERM does not end a rank of an elastic job.
#pragma once

#include <poll.h>

#include <cerrno>
#include <span>

#include "base/deadline.h"
#include "base/error.h"
#include "ddl/ddl.h"

namespace ddl::runtime {

/// What the program has registered.
struct InterruptCheck {
  ddl_interrupt_check check = nullptr;
  void* argument = nullptr;
};
/// The process's, because signals are. Changed while no other thread is inside libddl.
InterruptCheck& interrupt_check();
/// For a module, which has a copy of this code: uses libddl's.
void share_interrupt_check(InterruptCheck& of_libddl);

/// A wait of the calling thread that sleeps in the kernel, perhaps several times.
///
/// A signal that is handled during a sleep ends it, and the program is asked. If a signal is handled just before a
/// sleep, the program is asked a moment later: the first sleep is short, and from then on the program is asked whenever
/// the wait has become twice as long. If nothing is registered, and on libddl's own threads, which handle no signals,
/// nothing is asked and no sleep is shortened.
class Interruption {
 public:
  Interruption();

  /// When the next sleep is to end.
  Deadline limit(Deadline deadline) const { return look_.when() < deadline.when() ? look_ : deadline; }
  /// After a sleep, which a signal has ended or not: whether the program is to be asked.
  bool has_news(bool by_signal) const { return !look_.is_never() && (by_signal || look_.has_passed()); }
  /// If it is, asks: whether the program wants the wait to end.
  bool is_wanted(bool by_signal);

 private:
  Deadline::Clock::time_point began_;
  Deadline look_ = Deadline::never();  ///< never: nothing is asked
};

/// poll(2) until the deadline. A signal ends it only if the program wants that: -1 with EINTR, which to_failure() makes
/// DDL_ERROR_INTERRUPTED.
int poll_interruptibly(std::span<pollfd> entries, Deadline deadline);
/// Of an Error that was made of that errno.
inline bool is_interruption(const Error& error) { return error.system_errno() == EINTR; }

/// From now on SIGTERM does not end this process if Slurm's step daemon sends it. Slurm sends it to all processes of a
/// job that it ends, and ddlrun, which gets it too, decides what becomes of the ranks. Others' SIGTERM ends the process
/// as before. Does nothing if the program has a handler of its own, or ignores the signal. Once in a process.
void survive_sigterm_of_slurm();

}  // namespace ddl::runtime
