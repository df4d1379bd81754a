#include "runtime/src/common/interruption.h"

#include <pthread.h>
#include <signal.h>

#include <cerrno>
#include <chrono>

namespace ddl::runtime {
namespace {

/// Longer than most waits, so that few programs are asked without a signal: Python needs its global lock for an answer.
constexpr std::chrono::milliseconds kFirstSleep{20};

InterruptCheck& own_check() {
  static InterruptCheck check;
  return check;
}

InterruptCheck*& used_check() {
  static InterruptCheck* used = &own_check();
  return used;
}

bool handles_signals() {
  sigset_t blocked;
  return ::pthread_sigmask(SIG_SETMASK, nullptr, &blocked) == 0 && ::sigismember(&blocked, SIGINT) == 0;
}

}  // namespace

InterruptCheck& interrupt_check() { return *used_check(); }

void share_interrupt_check(InterruptCheck& of_libddl) { used_check() = &of_libddl; }

Interruption::Interruption() {
  if (interrupt_check().check == nullptr || !handles_signals()) return;
  began_ = Deadline::Clock::now();
  look_ = Deadline::after(kFirstSleep);
}

bool Interruption::is_wanted(bool by_signal) {
  if (!has_news(by_signal)) return false;
  if (look_.has_passed()) look_ = Deadline::after(Deadline::Clock::now() - began_);
  const InterruptCheck& asked = interrupt_check();
  return asked.check != nullptr && asked.check(asked.argument) != 0;
}

int poll_interruptibly(std::span<pollfd> entries, Deadline deadline) {
  Interruption interruption;
  for (;;) {
    const int ready =
        ::poll(entries.data(), entries.size(), interruption.limit(deadline).poll_milliseconds());
    const bool by_signal = ready < 0 && errno == EINTR;
    if (ready > 0 || (ready < 0 && !by_signal)) return ready;
    if (interruption.is_wanted(by_signal)) {
      errno = EINTR;
      return -1;
    }
    if (deadline.has_passed()) return 0;
  }
}

}  // namespace ddl::runtime
