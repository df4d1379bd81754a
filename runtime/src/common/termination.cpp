#include "runtime/src/common/termination.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <mutex>
#include <string_view>

namespace ddl::runtime {
namespace {

std::atomic<pid_t> process{0};  // that has the handler; a forked child inherits it

/// "/proc/PID/comm", for functions that a signal handler may call.
class CommPath {
 public:
  explicit CommPath(pid_t pid) {
    std::array<char, 16> digits{};
    std::size_t count = 0;
    do {
      digits[count++] = static_cast<char>('0' + pid % 10);
      pid /= 10;
    } while (pid > 0);
    append("/proc/");
    while (count > 0) path_[length_++] = digits[--count];
    append("/comm");
  }
  const char* get() const { return path_.data(); }

 private:
  void append(std::string_view text) {
    for (const char letter : text) path_[length_++] = letter;
  }
  std::array<char, 40> path_{};  // zeros follow
  std::size_t length_ = 0;
};

/// A sender of another PID namespace is 0, and unknown.
bool is_slurm(pid_t sender) {
  if (sender <= 0) return false;
  const int fd = ::open(CommPath(sender).get(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  std::array<char, 16> name{};
  const ssize_t count = ::read(fd, name.data(), name.size());
  ::close(fd);
  return count > 0 && std::string_view(name.data(), static_cast<std::size_t>(count)) == "slurmstepd\n";
}

void on_termination(int, siginfo_t* info, void*) {
  const int error = errno;
  if (::getpid() != process.load() || info->si_code > 0 || !is_slurm(info->si_pid)) {
    std::signal(SIGTERM, SIG_DFL);
    ::raise(SIGTERM);  // when this returns
  }
  errno = error;
}

}  // namespace

void survive_termination_by_slurm() {
  static std::once_flag once;
  std::call_once(once, [] {
    struct sigaction action {};
    if (::sigaction(SIGTERM, nullptr, &action) != 0 || (action.sa_flags & SA_SIGINFO) != 0 ||
        action.sa_handler != SIG_DFL)
      return;
    process = ::getpid();
    action = {};
    action.sa_sigaction = on_termination;
    action.sa_flags = SA_SIGINFO | SA_RESTART;
    ::sigemptyset(&action.sa_mask);
    ::sigaction(SIGTERM, &action, nullptr);
  });
}

}  // namespace ddl::runtime
