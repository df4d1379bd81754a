#include "launcher/fleet/piped_child.h"

#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <utility>

#include "base/pidfd.h"

namespace ddl::launcher {
namespace {

/// posix_spawn's settings: own process group, every signal at its default, the three pipes as standard streams.
class SpawnSettings {
 public:
  SpawnSettings(int in, int out, int err) {
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
    ::posix_spawn_file_actions_adddup2(&actions_, in, STDIN_FILENO);
    ::posix_spawn_file_actions_adddup2(&actions_, out, STDOUT_FILENO);
    ::posix_spawn_file_actions_adddup2(&actions_, err, STDERR_FILENO);
  }
  ~SpawnSettings() {
    ::posix_spawn_file_actions_destroy(&actions_);
    ::posix_spawnattr_destroy(&attributes_);
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;

  Result<pid_t> spawn(const std::vector<std::string>& words,
                      const std::optional<Environment>& environment) const {
    std::vector<std::string> entries;
    if (environment) {
      for (const auto& [name, value] : *environment) entries.push_back(name + "=" + value);
    }
    std::vector<char*> variables = pointers_to(entries), argv = pointers_to(words);
    pid_t pid = 0;
    if (const int error = ::posix_spawnp(&pid, argv[0], &actions_, &attributes_, argv.data(),
                                         environment ? variables.data() : environ);
        error != 0)
      return fail(errno_error("starting " + words.front(), error));
    return pid;
  }

 private:
  static std::vector<char*> pointers_to(const std::vector<std::string>& texts) {
    std::vector<char*> pointers;
    for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
    pointers.push_back(nullptr);
    return pointers;
  }

  posix_spawnattr_t attributes_;
  posix_spawn_file_actions_t actions_;
};

}  // namespace

Result<PipedChild> PipedChild::start(const std::vector<std::string>& words,
                                     const std::optional<Environment>& environment, Streams& streams) {
  auto in = make_pipe();
  if (!in) return fail(in.error());
  auto out = make_pipe();
  if (!out) return fail(out.error());
  auto err = make_pipe();
  if (!err) return fail(err.error());
  const auto pid =
      SpawnSettings(in->first.get(), out->second.get(), err->second.get()).spawn(words, environment);
  if (!pid) return fail(pid.error());
  streams = {std::move(out->first), std::move(in->second), std::move(err->first)};
  return PipedChild(*pid);
}

PipedChild::PipedChild(PipedChild&& other) noexcept
    : pid_(other.pid_), status_(other.status_), ended_(std::exchange(other.ended_, true)) {}

bool PipedChild::wait(Deadline deadline) {
  if (ended_) return true;
  if (const auto pidfd = open_pidfd(pid_)) {
    pollfd entry{pidfd->get(), POLLIN, 0};
    retry_eintr([&] { return ::poll(&entry, 1, deadline.poll_milliseconds()); });
  }
  ended_ = retry_eintr([&] { return ::waitpid(pid_, &status_, WNOHANG); }) == pid_;
  return ended_;
}

void PipedChild::end(Deadline deadline) {
  if (wait(deadline)) return;
  ::kill(-pid_, SIGKILL);  // its group: with ssh's ProxyCommand there is more than one
  retry_eintr([&] { return ::waitpid(pid_, &status_, 0); });
  ended_ = true;
}

}  // namespace ddl::launcher
