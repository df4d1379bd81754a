#include "launcher/node/spawner.h"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <deque>
#include <filesystem>
#include <map>

#include "base/fd.h"
#include "base/process_tree.h"
#include "launcher/node/node_probe.h"
#include "launcher/node/start_child.h"
#include "launcher/process/child.h"
#include "launcher/process/process_state.h"
#include "launcher/process/session_directory.h"
#include "launcher/protocol/codec.h"

namespace ddl::launcher {
namespace {

constexpr auto kAgentGoneGrace = std::chrono::milliseconds(500);
constexpr auto kAgentGoneDeadline = std::chrono::seconds(30);
// If the agent's parent notices its stops at once, the spawner checks only for the case that both were stopped.
constexpr auto kWatchedPeriod = std::chrono::seconds(10);

enum class AgentState : std::uint8_t { kConnected, kGone, kStopped };

/// The main loop of the spawner: one thread, one poll().
class Spawner {
 public:
  Spawner(UniqueFd channel, const rlimit& children_open_files, bool agent_is_watched)
      : channel_(std::move(channel)),
        children_open_files_(children_open_files),
        agent_is_watched_(agent_is_watched) {
    sigset_t child_signal;
    sigemptyset(&child_signal);
    sigaddset(&child_signal, SIGCHLD);
    ::sigprocmask(SIG_BLOCK, &child_signal, nullptr);
    child_events_ = UniqueFd(::signalfd(-1, &child_signal, SFD_CLOEXEC | SFD_NONBLOCK));
  }

  /// Returns when the agent has closed the channel or died (kGone), or stays stopped.
  AgentState serve() {
    Deadline next_check = Deadline::after(pause_before_check());
    while (agent_ == AgentState::kConnected) {
      const short channel_events = outgoing_.empty() ? POLLIN : POLLIN | POLLOUT;
      std::vector<pollfd> entries{{channel_.get(), channel_events, 0}, {child_events_.get(), POLLIN, 0}};
      for (const auto& child : starting_) entries.push_back({child.error_pipe.get(), POLLIN, 0});
      retry_eintr([&] { return ::poll(entries.data(), entries.size(), next_check.poll_milliseconds()); });
      if (next_check.has_passed()) {
        if (agent_watch_.is_stopped_for_good()) return AgentState::kStopped;
        next_check = Deadline::after(pause_before_check());
      }
      // Starts before ends: a child whose exec failed is reported as that, not as an exit with 127.
      for (std::size_t i = entries.size(); i-- > 2;) {
        if (entries[i].revents != 0) on_started(i - 2);
      }
      if (entries[1].revents != 0) on_child_events();
      if ((entries[0].revents & POLLOUT) != 0) send_outgoing();
      if ((entries[0].revents & ~POLLOUT) != 0) on_channel();
    }
    return agent_;
  }

 private:
  void report(const message::SpawnerToAgent& message) {
    const net::Frame frame = message::encode(message);
    net::append_frame(outgoing_, frame.type, frame.payload);
    send_outgoing();
  }

  // Never blocks: an agent that is busy sending many Spawns reads nothing meanwhile, and each would wait for
  // the other.
  void send_outgoing() {
    while (!outgoing_.empty()) {
      const ssize_t sent = retry_eintr([&] {
        return ::send(channel_.get(), outgoing_.data(), outgoing_.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
      });
      if (sent < 0) {
        if (errno != EAGAIN) agent_ = AgentState::kGone;
        return;
      }
      outgoing_.erase(0, sent);
    }
  }

  void on_channel() {
    std::array<std::byte, 65536> buffer;
    auto received = receive_with_fds(channel_.get(), buffer);
    if (!received || received->size == 0) {
      agent_ = AgentState::kGone;
      return;
    }
    for (auto& fd : received->fds) passed_fds_.push_back(std::move(fd));
    decoder_.append(std::span(buffer).first(received->size));
    while (agent_ == AgentState::kConnected) {
      auto frame = decoder_.next();
      if (!frame) return refuse(frame.error());
      if (!*frame) return;
      const auto message = message::decode<message::AgentToSpawner>(**frame);
      if (!message) return refuse(message.error());
      std::visit([this](const auto& m) { on(m); }, *message);
    }
  }

  /// After an invalid message nothing more is read: the ranks are ended as if the agent had died.
  void refuse(const Error& error) {
    std::fprintf(stderr, "ddlrun spawner on %s: the agent (process %d) sent %s; its ranks are ended\n",
                 hostname().c_str(), ::getppid(), error.message().c_str());
    agent_ = AgentState::kGone;
  }

  void on(const message::Spawn& message) {
    ChildFds fds;
    if (passed_fds_.size() < fds.standard.size() + message.child.inherited_fds.size())
      return report(message::ChildFailed{message.child.rank, StartStage::kStreams, EBADF});
    for (auto& fd : fds.standard) fd = take_passed_fd();
    for (std::size_t i = 0; i < message.child.inherited_fds.size(); ++i)
      fds.inherited.push_back(take_passed_fd());
    auto child = start_child(message.child, fds, children_open_files_);
    if (!child) {
      return report(
          message::ChildFailed{message.child.rank, StartStage::kFork, child.error().system_errno()});
    }
    starting_.push_back(std::move(*child));
  }

  UniqueFd take_passed_fd() {
    UniqueFd fd = std::move(passed_fds_.front());
    passed_fds_.pop_front();
    return fd;
  }

  void on(const message::SignalChildren& message) {
    for (const auto& [pid, child] : running_) ::kill(-pid, message.signal);
    // Also children before their exec: the signal is sent only once.
    for (const auto& child : starting_) ::kill(-child.pid, message.signal);
  }

  void on(const message::SignalChild& message) {
    for (const auto& [pid, child] : running_) {
      if (child.rank == message.rank) ::kill(-pid, message.signal);
    }
  }

  void on(const message::AskToEnd& message) {
    for (const ProcessId& process : descendants_of(::getpid())) {
      signal_process(process, message.signal);
      // Only if it is needed: SIGCONT cancels the SIGSTOP of a debugger (or leak checker) that is just attaching,
      // which would then wait for ever.
      if (is_stopped(process.pid)) signal_process(process, SIGCONT);
    }
  }

  void on(const message::KillAll&) {
    killing_ = true;
    kill_once();
  }

  void on(const message::ReportGone&) {
    on_child_events();  // processes that have ended already are not leftovers
    if (has_children()) report(message::Leftovers{std::max<int>(1, descendants_of(::getpid()).size())});
    report_gone_ = true;
    on_child_events();
  }

  void on_started(std::size_t index) {
    StartingChild& child = starting_[index];
    message::ChildFailed failure;
    const StartState state = read_start_state(child, failure);
    if (state == StartState::kStarting) return;
    if (state == StartState::kFailed) {
      retry_eintr([&] { return ::waitpid(child.pid, nullptr, 0); });
      early_ends_.erase(child.pid);
      report(failure);
    } else {
      running_.emplace(child.pid, Running{child.rank, child.started});
      // Before it is reaped, if it has ended already.
      const KernelBinding binding = child.report_bindings ? read_kernel_binding(child.pid) : KernelBinding{};
      report(message::ChildStarted{child.rank, child.pid, binding, child.cpu_error, child.memory_error});
      if (const auto early = early_ends_.find(child.pid); early != early_ends_.end()) {
        on_ended(early->first, early->second);
        early_ends_.erase(early);
      }
    }
    starting_.erase(starting_.begin() + index);
    report_if_all_gone();
  }

  void on_child_events() {
    signalfd_siginfo ignored;
    while (::read(child_events_.get(), &ignored, sizeof ignored) > 0) {
    }
    int status = 0;
    pid_t pid = 0;
    // Orphans of the ranks are ours too (subreaper): they are reaped and not reported.
    std::vector<std::pair<pid_t, Ended>> ended;
    rusage usage{};
    while ((pid = ::wait4(-1, &status, WNOHANG | WUNTRACED | WCONTINUED, &usage)) > 0) {
      if (WIFSTOPPED(status) || WIFCONTINUED(status)) {
        on_stopped(pid, WIFSTOPPED(status) ? WSTOPSIG(status) : 0);
      } else {
        ended.emplace_back(pid, Ended{status, process_usage(usage)});
      }
    }
    // Several at once, and the kernel does not keep their order: death by a signal is a cause more often than
    // a consequence, so it is reported first.
    std::stable_partition(ended.begin(), ended.end(),
                          [](const auto& end) { return WIFSIGNALED(end.second.wait_status); });
    for (const auto& [ended_pid, end] : ended) on_ended(ended_pid, end);
    if (killing_) kill_once();
    report_if_all_gone();
  }

  void report_if_all_gone() {
    // If one ended before its exec was noticed, its start and end are reported first.
    if (!report_gone_ || !starting_.empty() || has_children()) return;
    report_gone_ = false;
    killing_ = false;
    report(message::AllGone{});
  }

  void on_stopped(pid_t pid, int signal) {
    const auto child = running_.find(pid);
    if (child != running_.end()) report(message::ChildStopped{child->second.rank, signal});
  }

  /// What wait4(2) says of a process.
  struct Ended {
    int wait_status = 0;
    ProcessUsage usage;
  };

  void on_ended(pid_t pid, const Ended& end) {
    const auto child = running_.find(pid);
    if (child != running_.end()) {
      const auto age = std::chrono::steady_clock::now() - child->second.started;
      report(message::ChildEnded{child->second.rank, end.wait_status,
                                 std::chrono::duration<double>(age).count(), end.usage});
      running_.erase(child);
      return;
    }
    // It may be one whose exec has not been noticed yet; the end of a grandchild is not reported.
    for (const auto& starting : starting_) {
      if (starting.pid == pid) early_ends_.emplace(pid, end);
    }
  }

  std::chrono::milliseconds pause_before_check() const {
    return agent_is_watched_ && !agent_watch_.was_stopped() ? kWatchedPeriod : agent_watch_.pause();
  }

  static void kill_once() { (void)signal_descendants(SIGKILL); }

  struct Running {
    int rank = 0;
    std::chrono::steady_clock::time_point started;
  };

  UniqueFd channel_;
  rlimit children_open_files_;
  bool agent_is_watched_;
  UniqueFd child_events_;
  StoppedWatch agent_watch_{::getppid()};
  AgentState agent_ = AgentState::kConnected;
  bool killing_ = false;      ///< until no process is left: KillAll was received
  bool report_gone_ = false;  ///< AllGone is owed to a ReportGone
  net::FrameDecoder decoder_;
  std::string outgoing_;
  std::deque<UniqueFd> passed_fds_;
  std::vector<StartingChild> starting_;
  std::map<pid_t, Running> running_;
  std::map<pid_t, Ended> early_ends_;  // of starting_
};

/// The first bytes on the channel: why the session directory could not be made, or nothing, and a zero.
void report_directory(const UniqueFd& channel, const Status& made) {
  const std::string why = made ? "" : made.error().message();
  (void)::send(channel.get(), why.c_str(), why.size() + 1, MSG_NOSIGNAL);
}

Status read_directory_report(const UniqueFd& channel) {
  std::string why;
  char next = 0;
  while (retry_eintr([&] { return ::read(channel.get(), &next, 1); }) == 1) {
    if (next != 0) {
      why += next;
    } else if (why.empty()) {
      return {};
    } else {
      return fail(ErrorCode::kSystem, why);
    }
  }
  return fail(ErrorCode::kClosed, "the spawner has ended before it had made the job's private directory");
}

[[noreturn]] void run_spawner(UniqueFd channel, const std::string& session_directory,
                              const rlimit& open_files, bool agent_is_watched) {
  ::prctl(PR_SET_NAME, "ddl-spawner");
  // A resource manager sends it to all processes of a job, and the spawner must survive to clean up. Children get
  // the default back.
  std::signal(SIGTERM, SIG_IGN);
  // A resource manager sends its warning to every process of a job, and it is meant for the ranks.
  for (const int signal : {SIGUSR1, SIGUSR2}) std::signal(signal, SIG_IGN);
  (void)become_subreaper();
  const pid_t agent = ::getppid();
  // By the process that removes it: there is no moment at which another one's death would leave it.
  const Status made = make_session_directory(session_directory);
  report_directory(channel, made);
  if (!made) ::_exit(1);
  const AgentState agent_state = Spawner(std::move(channel), open_files, agent_is_watched).serve();
  // The agent has ended, in order or not: no process of the job may be left.
  const auto left = signal_descendants(SIGTERM);
  if (!left.empty() && !wait_for_descendants(Deadline::after(kAgentGoneGrace))) {
    kill_descendants(Deadline::after(kAgentGoneDeadline));
  }
  if (agent_state == AgentState::kStopped && ::getppid() == agent) {
    std::fprintf(stderr,
                 "ddlrun spawner on %s: the agent (process %d) was stopped; its ranks were ended, and it was "
                 "killed\n",
                 hostname().c_str(), agent);
    ::kill(agent, SIGKILL);
  }
  std::error_code ignored;
  std::filesystem::remove_all(session_directory, ignored);
  ::_exit(0);
}

}  // namespace

Result<SpawnerProcess> start_spawner(const std::string& session_directory, const rlimit& children_open_files,
                                     bool agent_is_watched) {
  DDL_ASSIGN(channel, make_socket_pair(SOCK_STREAM));
  // Not by Child::start(): the spawner executes no program, it is a function of this one.
  const pid_t pid = ::fork();
  if (pid < 0) return fail_errno("fork");
  if (pid == 0) {
    close_all_fds_but(channel.second.get());
    channel.first.release();  // closed by the line above
    run_spawner(std::move(channel.second), session_directory, children_open_files, agent_is_watched);
  }
  channel.second.reset();  // so that its end is noticed
  DDL_TRY(read_directory_report(channel.first));
  return SpawnerProcess{pid, std::move(channel.first)};
}

void SpawnerChannel::start(Handlers handlers) {
  handlers_ = std::move(handlers);
  watch_ = loop_.watch(process_.channel.get(), [this] { on_readable(); });
}

void SpawnerChannel::send(const message::AgentToSpawner& message, std::span<const int> fds) {
  if (lost_) return;
  const net::Frame frame = message::encode(message);
  std::string bytes;
  net::append_frame(bytes, frame.type, frame.payload);
  // A failed write means that it died: the reading side notices, after its last reports.
  (void)send_with_fds(process_.channel.get(), std::as_bytes(std::span(bytes)), fds);
}

void SpawnerChannel::on_readable() {
  std::array<std::byte, 16384> buffer;
  const auto received = receive_with_fds(process_.channel.get(), buffer);
  if (!received || received->size == 0) return lose();
  decoder_.append(std::span(buffer).first(received->size));
  while (!lost_) {
    auto frame = decoder_.next();
    if (!frame) return refuse(frame.error());
    if (!*frame) return;
    const auto message = message::decode<message::SpawnerToAgent>(**frame);
    if (!message) return refuse(message.error());
    handlers_.on_message(*message);
  }
}

std::chrono::milliseconds SpawnerChannel::check() {
  if (lost_) return StoppedWatch::kPeriod;
  if (stopped_watch_.is_stopped_for_good()) kill("was stopped");
  return stopped_watch_.pause();
}

void SpawnerChannel::refuse(const Error& error) {
  kill("sent " + error.message());
  lose();
}

void SpawnerChannel::lose() {
  lost_ = true;
  watch_.reset();
  handlers_.on_lost();
}

void SpawnerChannel::kill(std::string why) {
  if (lost_) return;
  ::kill(process_.pid, SIGKILL);  // not reaped yet, so it is still that process
  killed_because_ = std::move(why);
}

std::string SpawnerChannel::how_it_ended() {
  std::string how = describe_child_end(process_.pid);
  return killed_because_.empty() ? how : killed_because_ + ", and was killed";
}

}  // namespace ddl::launcher
