#include "launcher/fleet/ssh/ssh_starter.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "base/pidfd.h"
#include "base/text.h"
#include "launcher/fleet/greeting.h"
#include "launcher/fleet/ssh/ssh_failure.h"

namespace ddl::launcher {
namespace {

constexpr auto kEndDeadline = std::chrono::seconds(1);

/// One ssh process: a child of ours until it has been waited for.
class SshProcess : public AgentProcess {
 public:
  SshProcess(pid_t pid, std::string program, std::string remote_path)
      : pid_(pid), program_(std::move(program)), remote_path_(std::move(remote_path)) {}
  ~SshProcess() override { clean_up(Deadline::after(std::chrono::seconds(0))); }

  std::string how_it_ended() override {
    if (!wait(Deadline::after(kEndDeadline))) return "its connection closed, and " + program_ + " goes on";
    if (WIFSIGNALED(status_)) return program_ + " was killed by " + signal_text(WTERMSIG(status_));
    const int code = WEXITSTATUS(status_);
    // 255 is ssh's own failure; otherwise it is what the agent's end was over there.
    if (code == 255) return "its agent was killed or the ssh connection broke";
    if (code > 128) return "the agent was killed by " + signal_text(code - 128);
    return "the agent ended with " + std::to_string(code);
  }

  StartFailure why_not_started(std::string_view noise, std::string_view errors) override {
    if (!wait(Deadline::after(kEndDeadline))) {
      const std::string said = telling_lines(errors);
      return {program_ + " closed the connection and goes on" +
              (said.empty() ? "" : " (it wrote: " + said + ")")};
    }
    return describe_ssh_failure({program_, remote_path_, status_, noise, errors});
  }

  void clean_up(Deadline deadline) override {
    if (wait(deadline)) return;
    ::kill(-pid_, SIGKILL);  // its group: with ProxyCommand there is more than one
    retry_eintr([&] { return ::waitpid(pid_, &status_, 0); });
    ended_ = true;
  }

 private:
  bool wait(Deadline deadline) {
    if (ended_) return true;
    if (const auto pidfd = open_pidfd(pid_)) {
      pollfd entry{pidfd->get(), POLLIN, 0};
      retry_eintr([&] { return ::poll(&entry, 1, deadline.poll_milliseconds()); });
    }
    ended_ = retry_eintr([&] { return ::waitpid(pid_, &status_, WNOHANG); }) == pid_;
    return ended_;
  }

  pid_t pid_;
  std::string program_;
  std::string remote_path_;
  int status_ = 0;
  bool ended_ = false;
};

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

  Result<pid_t> spawn(const std::vector<std::string>& words) const {
    std::vector<char*> argv;
    for (const auto& word : words) argv.push_back(const_cast<char*>(word.c_str()));
    argv.push_back(nullptr);
    pid_t pid = 0;
    if (const int error = ::posix_spawnp(&pid, argv[0], &actions_, &attributes_, argv.data(), environ);
        error != 0)
      return fail(errno_error("starting " + words.front(), error));
    return pid;
  }

 private:
  posix_spawnattr_t attributes_;
  posix_spawn_file_actions_t actions_;
};

class SshStarter : public NodeStarter {
 public:
  explicit SshStarter(SshSettings settings) : settings_(std::move(settings)) {}

  bool forks() const override { return false; }

  Result<StartedAgent> start(const AllocatedNode& node) override {
    auto nonce = make_nonce();
    if (!nonce) return fail(nonce.error());
    const auto words = ssh_command(settings_, node, *nonce);
    if (!words) return fail(words.error());
    auto in = make_pipe();
    if (!in) return fail(in.error());
    auto out = make_pipe();
    if (!out) return fail(out.error());
    auto err = make_pipe();
    if (!err) return fail(err.error());
    const SpawnSettings spawn_settings(in->first.get(), out->second.get(), err->second.get());
    const auto pid = spawn_settings.spawn(*words);
    if (!pid) {
      return fail(pid.error().code(),
                  pid.error().message() +
                      (words->front() == "ssh" ? "; install an ssh client (openssh-client)" : ""));
    }
    return StartedAgent{std::move(out->first), std::move(in->second), std::move(err->first),
                        std::move(*nonce),
                        std::make_unique<SshProcess>(*pid, words->front(), settings_.remote_path)};
  }

 private:
  SshSettings settings_;
};

}  // namespace

std::unique_ptr<NodeStarter> make_ssh_starter(SshSettings settings) {
  return std::make_unique<SshStarter>(std::move(settings));
}

}  // namespace ddl::launcher
