#include "base/process.h"

#include <poll.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>

#include "base/text.h"

namespace ddl {

std::optional<std::string> find_in_path(std::string_view name, std::string_view path) {
  for (const std::string_view folder : split(path, ':')) {
    std::string file = std::string(folder.empty() ? "." : folder) + "/" + std::string(name);
    struct stat status {};
    if (::access(file.c_str(), X_OK) == 0 && ::stat(file.c_str(), &status) == 0 && S_ISREG(status.st_mode))
      return file;
  }
  return std::nullopt;
}

namespace {

/// posix_spawn's two settings, freed in the end.
class SpawnSettings {
 public:
  explicit SpawnSettings(const StandardStreams& streams) {
    ::posix_spawnattr_init(&attributes_);
    ::posix_spawn_file_actions_init(&actions_);
    sigset_t none;
    sigset_t all;
    sigemptyset(&none);
    sigfillset(&all);
    ::posix_spawnattr_setflags(&attributes_,
                               POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    ::posix_spawnattr_setpgroup(&attributes_, 0);
    ::posix_spawnattr_setsigmask(&attributes_, &none);
    ::posix_spawnattr_setsigdefault(&attributes_, &all);
    ::posix_spawn_file_actions_adddup2(&actions_, streams.in, STDIN_FILENO);
    ::posix_spawn_file_actions_adddup2(&actions_, streams.out, STDOUT_FILENO);
    ::posix_spawn_file_actions_adddup2(&actions_, streams.err, STDERR_FILENO);
  }
  ~SpawnSettings() {
    ::posix_spawn_file_actions_destroy(&actions_);
    ::posix_spawnattr_destroy(&attributes_);
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;

  const posix_spawnattr_t* attributes() const { return &attributes_; }
  const posix_spawn_file_actions_t* actions() const { return &actions_; }

 private:
  posix_spawnattr_t attributes_;
  posix_spawn_file_actions_t actions_;
};

using Entries = std::optional<std::vector<std::string>>;

/// The pointers lead into the entries, which must outlive them.
std::vector<char*> pointers_to(const Entries& environment) {
  return environment ? c_strings(*environment) : std::vector<char*>{};
}
std::vector<char*> pointers_to(const Entries&& environment) = delete;

}  // namespace

Result<pid_t> spawn(const std::vector<std::string>& words, const StandardStreams& streams,
                    const std::optional<std::vector<std::string>>& environment) {
  const SpawnSettings settings(streams);
  const auto argv = c_strings(words);
  const auto variables = pointers_to(environment);
  pid_t pid = 0;
  const int refused = ::posix_spawnp(&pid, argv[0], settings.actions(), settings.attributes(), argv.data(),
                                     environment ? variables.data() : environ);
  if (refused != 0) return fail(errno_error("starting " + words.front(), refused));
  return pid;
}

Error become(const std::vector<std::string>& words,
             const std::optional<std::vector<std::string>>& environment) {
  const auto argv = c_strings(words);
  const auto variables = pointers_to(environment);
  ::execvpe(argv[0], argv.data(), environment ? variables.data() : environ);
  return errno_error("executing " + words.front(), errno);
}

Result<UniqueFd> open_pidfd(pid_t pid) {
  // By number: glibc has wrappers only since 2.36, and clusters run older ones.
  const long fd = ::syscall(SYS_pidfd_open, pid, 0);
  if (fd < 0) return fail_errno("pidfd_open of process " + std::to_string(pid));
  return UniqueFd(static_cast<int>(fd));
}

Status send_signal(int pidfd, int signal) {
  if (::syscall(SYS_pidfd_send_signal, pidfd, signal, nullptr, 0) != 0 && errno != ESRCH) {
    return fail_errno("pidfd_send_signal");
  }
  return {};
}

bool has_ended(int pidfd) {
  pollfd entry{pidfd, POLLIN, 0};
  return retry_eintr([&] { return ::poll(&entry, 1, 0); }) == 1;
}

bool has_child_ended(pid_t child) {
  siginfo_t info{};
  return ::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
         info.si_pid == child;
}

bool wait_for_end(pid_t child, Deadline deadline) {
  const auto pidfd = open_pidfd(child);
  for (;;) {
    if (has_child_ended(child)) return true;
    if (deadline.has_passed()) return false;
    pollfd entry{pidfd ? pidfd->get() : -1, POLLIN, 0};
    (void)::poll(&entry, 1, pidfd ? deadline.poll_milliseconds() : nap_milliseconds(deadline));
  }
}

int nap_milliseconds(Deadline deadline) {
  constexpr int kNap = 5;
  const int left = deadline.poll_milliseconds();
  return left < 0 ? kNap : std::min(left, kNap);
}

}  // namespace ddl
