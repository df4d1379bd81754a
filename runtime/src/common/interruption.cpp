#include "runtime/src/common/interruption.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <mutex>
#include <string_view>

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

std::atomic<pid_t> surviving_process{0};  // a forked child inherits the handler, and is another process

/// Uses what a signal handler may. A sender of another PID namespace is 0, and unknown.
bool is_slurm(pid_t sender) {
  if (sender <= 0) return false;
  std::array<char, 40> path{"/proc/"};
  char* const end = std::to_chars(path.data() + std::strlen("/proc/"), path.data() + 20, sender).ptr;
  std::memcpy(end, "/comm", sizeof "/comm");
  const int fd = ::open(path.data(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  std::array<char, 16> name{};
  const ssize_t count = ::read(fd, name.data(), name.size());
  ::close(fd);
  return count > 0 && std::string_view(name.data(), static_cast<std::size_t>(count)) == "slurmstepd\n";
}

void on_sigterm(int, siginfo_t* info, void*) {
  const int error = errno;
  if (::getpid() != surviving_process.load() || info->si_code > 0 || !is_slurm(info->si_pid)) {
    ::signal(SIGTERM, SIG_DFL);
    ::raise(SIGTERM);  // when this returns
  }
  errno = error;
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
  const InterruptCheck asked = interrupt_check();  // another thread may take it back
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

void survive_sigterm_of_slurm() {
  static std::once_flag once;
  std::call_once(once, [] {
    struct sigaction action {};
    if (::sigaction(SIGTERM, nullptr, &action) != 0 || (action.sa_flags & SA_SIGINFO) != 0 ||
        action.sa_handler != SIG_DFL)
      return;
    surviving_process = ::getpid();
    action = {};
    action.sa_sigaction = on_sigterm;
    action.sa_flags = SA_SIGINFO | SA_RESTART;
    ::sigemptyset(&action.sa_mask);
    ::sigaction(SIGTERM, &action, nullptr);
  });
}

}  // namespace ddl::runtime
