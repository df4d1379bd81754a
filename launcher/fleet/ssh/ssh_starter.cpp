#include "launcher/fleet/ssh/ssh_starter.h"

#include <sys/wait.h>

#include "base/text.h"
#include "launcher/fleet/greeting.h"
#include "launcher/fleet/piped_child.h"
#include "launcher/fleet/ssh/ssh_failure.h"
#include "launcher/fleet/telling_lines.h"

namespace ddl::launcher {
namespace {

constexpr auto kSshEndDeadline = std::chrono::seconds(1);

/// One ssh process.
class SshProcess : public AgentProcess {
 public:
  SshProcess(PipedChild child, std::string program, std::string remote_path)
      : child_(std::move(child)), program_(std::move(program)), remote_path_(std::move(remote_path)) {}

  std::string how_it_ended() override {
    if (!child_.wait(Deadline::after(kSshEndDeadline)))
      return "its connection closed, and " + program_ + " goes on";
    const int status = child_.status();
    if (WIFSIGNALED(status)) return program_ + " was killed by " + signal_text(WTERMSIG(status));
    const int code = WEXITSTATUS(status);
    // 255 is ssh's own failure; otherwise it is what the agent's end was over there.
    if (code == 255) return "its agent was killed or the ssh connection broke";
    if (code > 128) return "the agent was killed by " + signal_text(code - 128);
    return "the agent ended with " + std::to_string(code);
  }

  StartFailure why_not_started(std::string_view noise, std::string_view errors) override {
    if (!child_.wait(Deadline::after(kSshEndDeadline))) {
      const std::string said = telling_lines(errors);
      return {program_ + " closed the connection and goes on" +
              (said.empty() ? "" : " (it wrote: " + said + ")")};
    }
    return describe_ssh_failure({program_, remote_path_, child_.status(), noise, errors});
  }

  void clean_up(Deadline deadline) override { child_.end(deadline); }

 private:
  PipedChild child_;
  std::string program_;
  std::string remote_path_;
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
    PipedChild::Streams streams;
    auto child = PipedChild::start(*words, std::nullopt, streams);
    if (!child) {
      return fail(child.error().code(),
                  child.error().message() +
                      (words->front() == "ssh" ? "; install an ssh client (openssh-client)" : ""));
    }
    return StartedAgent{
        std::move(streams.out), std::move(streams.in), std::move(streams.err), std::move(*nonce),
        std::make_unique<SshProcess>(*std::move(child), words->front(), settings_.remote_path)};
  }

 private:
  SshSettings settings_;
};

}  // namespace

std::unique_ptr<NodeStarter> make_ssh_starter(SshSettings settings) {
  return std::make_unique<SshStarter>(std::move(settings));
}

}  // namespace ddl::launcher
