#include "launcher/fleet/local.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>

#include "base/process_tree.h"
#include "launcher/process/child.h"
#include "launcher/process/session_directory.h"

namespace ddl::launcher {
namespace {

constexpr auto kForceDeadline = std::chrono::seconds(2);

class ForkedAgent : public AgentProcess {
 public:
  ForkedAgent(pid_t pid, std::string session_directory, std::vector<ProcessId> preexisting)
      : pid_(pid), session_directory_(std::move(session_directory)), preexisting_(std::move(preexisting)) {}

  std::string how_it_ended() override {
    return "the agent (process " + std::to_string(pid_) + ") " + describe_child_end(pid_);
  }

  Error why_not_started(std::string_view, std::string_view) override {
    return {ErrorCode::kUnavailable, how_it_ended()};
  }

  void clean_up(Deadline deadline) override {
    if (!wait_for_descendants(deadline, preexisting_)) {
      kill_descendants(Deadline::after(kForceDeadline), preexisting_);
    }
    remove_session_directory(session_directory_);  // if agent and spawner were killed together
  }

 private:
  pid_t pid_;
  std::string session_directory_;
  std::vector<ProcessId> preexisting_;
};

[[noreturn]] void become_agent(const AgentMain& agent_main, const std::string& session_directory,
                               UniqueFd link, pid_t head) {
  close_all_fds_but(link.get());
  // The head may hold signals back.
  sigset_t none;
  ::sigemptyset(&none);
  ::pthread_sigmask(SIG_SETMASK, &none, nullptr);
  // It keeps standard error, to report there when the head has died. If it kept the others, a reader of ddlrun's
  // output would not see its end.
  if (const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC); null >= 0) {
    ::dup2(null, STDIN_FILENO);
    ::dup2(null, STDOUT_FILENO);
    ::close(null);
  }
  ::_exit(agent_main(session_directory, std::move(link), head));
}

class LocalStarter : public NodeStarter {
 public:
  explicit LocalStarter(AgentMain agent_main) : agent_main_(std::move(agent_main)) {}

  bool forks() const override { return true; }

  Result<StartedAgent> start(const AllocatedNode&) override {
    auto link = make_socket_pair(SOCK_STREAM);
    if (!link) return fail(std::move(link.error()).during("starting the agent on this machine"));
    // The head chooses the name, because it outlives the agent that creates the directory.
    auto directory = new_session_directory_name();
    if (!directory) return fail(std::move(directory.error()).during("starting the agent on this machine"));
    // After "something & exec ddlrun ..." in a shell, "something" is a child of this process but not a part of the
    // job.
    auto preexisting = descendants_of(::getpid());
    (void)become_subreaper();
    // Not by Child::start(): the agent executes no program, it is a function of this one.
    const pid_t head = ::getpid(), pid = ::fork();
    if (pid < 0) {
      return fail(errno_error("fork", errno).during("starting the agent on this machine"));
    }
    if (pid == 0) become_agent(agent_main_, *directory, std::move(link->second), head);
    StartedAgent started;
    started.read = std::move(link->first);
    started.child = pid;
    started.process = std::make_unique<ForkedAgent>(pid, *std::move(directory), std::move(preexisting));
    return started;
  }

 private:
  AgentMain agent_main_;
};

}  // namespace

std::unique_ptr<NodeStarter> make_local_starter(AgentMain agent_main) {
  return std::make_unique<LocalStarter>(std::move(agent_main));
}

}  // namespace ddl::launcher
