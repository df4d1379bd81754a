#include "launcher/node/agent.h"

#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/deadline.h"
#include "base/process_tree.h"
#include "base/text.h"
#include "contract/environment.h"
#include "launcher/node/agent_phases.h"
#include "launcher/node/clock_watch.h"
#include "launcher/node/gpu_watch.h"
#include "launcher/node/held_ends.h"
#include "launcher/node/held_ports.h"
#include "launcher/node/job_presence.h"
#include "launcher/node/local_ranks.h"
#include "launcher/node/name_lookup.h"
#include "launcher/node/node_probe.h"
#include "launcher/node/port_watch.h"
#include "launcher/node/preemption_watch.h"
#include "launcher/node/rank_process.h"
#include "launcher/node/rank_watch.h"
#include "launcher/node/relay.h"
#include "launcher/node/request_forwarding.h"
#include "launcher/node/requeue_job.h"
#include "launcher/node/spawner.h"
#include "launcher/plan/server_addresses.h"
#include "launcher/pmix/pmix_server.h"
#include "launcher/process/child.h"
#include "launcher/process/memory_cgroup.h"
#include "launcher/process/node_usage.h"
#include "launcher/process/process_state.h"
#include "launcher/process/session_directory.h"
#include "launcher/process/terminator.h"
#include "launcher/protocol/codec.h"
#include "launcher/protocol/heartbeat.h"
#include "launcher/protocol/link.h"
#include "launcher/scheduler/scheduler.h"
#include "net/job_key.h"

namespace ddl::launcher {
namespace {

// Without the head nobody waits for a graceful end: ranks get a moment to save their data. The documented limits
// are 2 s after the head's end, and 5 s after it became silent.
constexpr double kHeadLostGraceSeconds = 1.0;
constexpr double kHeadAbandonedGraceSeconds = 0.5;
// A head on this host may be stopped for about as long as a head on another host may be silent.
constexpr int kHeadChecks = 3;
// Agents that this one has started end when their links close, unless their host is dead.
constexpr auto kRelayDeadline = std::chrono::milliseconds(500);
constexpr auto kSpawnerGoneDeadline = std::chrono::seconds(2);

// Between the words that a host is lost and the signal that ends ranks: most of them end at once by SIGTERM, without an
// error message.
constexpr auto kReportTime = std::chrono::milliseconds(500);

// There are no more on a machine.
constexpr int kMaxPorts = 1 << 16;

std::string start_failure(Error error, int rank) {
  std::string text = error.during("starting rank " + std::to_string(rank)).message();
  if (error.system_errno() != EMFILE) return text;
  return text + "; a node needs about 5 descriptors a rank, and the hard limit (ulimit -Hn) is " +
         std::to_string(open_files_limit().rlim_max);
}

class Agent {
 public:
  Agent(UniqueFd link_read, UniqueFd link_write, SpawnerProcess spawner, std::string directory,
        NodeFacts facts, HeldPorts& held_ports, pid_t head)
      : directory_(std::move(directory)),
        facts_(std::move(facts)),
        allowed_cpus_(facts_.allowed_cpus),
        held_ports_(held_ports),
        link_(make_stream_link(loop_, std::move(link_read), std::move(link_write))),
        spawner_(loop_, std::move(spawner)),
        terminator_(loop_, {[this](int signal) {
                              ending_.requested_signals.push_back(signal);
                              if (signal == SIGINT) {
                                spawner_.send(message::SignalChildren{signal});
                              } else {
                                spawner_.send(message::AskToEnd{signal});
                              }
                            },
                            [this] {
                              ending_.killed = true;
                              spawner_.send(message::KillAll{});
                            }}),
        relay_(loop_, [this](const message::AgentToHead& message) { report(message); }),
        head_pace_(head > 0 ? kLocalPace : kRemotePace),
        head_heartbeat_(loop_, head_pace_,
                        {[this] { report(message::Heartbeat{}); },
                         [this] {
                           is_head_silent_ = true;
                           abandon_head("nothing was heard from ddlrun for " + silence_text(head_pace_));
                         }}) {
    if (head > 0) head_watch_.emplace(head, kHeadChecks);
  }

  int run() {
    // The head plans while the PMIx library starts.
    report(message::Facts{std::exchange(facts_, {})});
    spawner_.start(
        {[this](const message::SpawnerToAgent& m) { std::visit([this](const auto& one) { on(one); }, m); },
         [this] { take(AgentEvent::kSpawnerLost); }});
    link_->start(
        {[this](const net::Frame& frame) { on_frame(frame); },
         [this](const std::string&) { on_head_lost("ddlrun itself has ended", kHeadLostGraceSeconds); }});
    head_heartbeat_.start();
    loop_.watch_signals({SIGTERM}, [this](int) { on_termination_requested(); });
    check_regularly();
    if (auto status = ranks_.start_pmix(directory_); !status) give_up(status.error().message());
    loop_.run();
    ranks_.shut_down_pmix();
    relay_.shut_down(Deadline::after(kRelayDeadline));
    return 0;
  }

  /// Afterwards. A link that has closed is no reason: a user or the scheduler has ended ddlrun.
  Requeue requeue() const { return is_head_silent_ ? job_.requeue : Requeue(); }

 private:
  void report(const message::AgentToHead& message) { message::send(*link_, message); }

  NodeUsage usage() const {
    NodeUsage usage = node_usage_.use(memory_cgroup_, allowed_cpus_);
    if (job_.measures_use) gpu_watch_.add_to(usage);
    return usage;
  }

  // ---- phases ----

  /// how and grace_seconds: of kHeadLost.
  void take(AgentEvent event, const std::string& how = {}, double grace_seconds = 0) {
    const AgentStep step = agent_step(phase_, event);
    phase_ = step.next;
    if (phase_ == AgentPhase::kOver) loop_.stop();
    switch (step.action) {
      case AgentAction::kNone: return;
      case AgentAction::kAskForAllGone: return spawner_.send(message::ReportGone{});
      case AgentAction::kEndLeftovers: return terminator_.begin(SIGTERM, job_.kill_grace_seconds);
      case AgentAction::kReportFinished: return report(message::Finished{leftovers_, usage()});
      case AgentAction::kKillAndReport: return report(message::AgentFailed{kill_after_spawner(), true});
      case AgentAction::kKill: return (void)kill_after_spawner();
      case AgentAction::kEndProcesses: return end_processes(how, grace_seconds);
      case AgentAction::kSay: return say(how);
    }
  }

  /// How the head was lost: not if no rank has started, or if the job was ending for a reason that the head knows.
  void say(const std::string& how) const {
    if (ranks_.size() == 0 || has_failed_) return;
    std::fprintf(stderr, "ddlrun agent on %s: %s\n", hostname().c_str(), how.c_str());
  }

  void end_processes(const std::string& how, double grace_seconds) {
    say(how + "; ending " + counted(ranks_.size(), "rank"));
    terminator_.begin(SIGTERM, grace_seconds);
    spawner_.send(message::ReportGone{});
  }

  /// Returns what happened, as a sentence.
  std::string kill_after_spawner() {
    const std::string how = spawner_.how_it_ended();
    const int killed = kill_descendants(Deadline::after(kSpawnerGoneDeadline));
    return "the spawner (process " + std::to_string(spawner_.pid()) + ") " + how + "; " +
           counted(killed, "process") + " of the job left on this node " + (killed == 1 ? "was" : "were") +
           " killed";
  }

  /// Other ranks go on when one ends.
  bool is_elastic() const { return job_.environment.contains(contract::env::kElastic); }

  void check_all_sent() {
    if (ranks_.is_all_sent()) take(AgentEvent::kAllSent);
  }

  /// Reports why the job cannot run here. The head ends it.
  void give_up(const std::string& why) {
    has_failed_ = true;
    report(message::AgentFailed{why, false});
  }

  // ---- from the head ----

  void on_frame(const net::Frame& frame) {
    if (phase_ >= AgentPhase::kOrphaned) return;  // nothing of a lost head is read
    head_heartbeat_.heard();
    if (message::is_in<message::ForAllAgents>(frame)) relay_.pass_to_all(frame);
    auto message = message::decode<message::HeadToAgent>(frame);
    if (!message) return abandon_head("ddlrun sent " + message.error().message());
    std::visit([this](auto& m) { on(std::move(m)); }, *message);
  }

  void on(const message::Heartbeat&) {}  // on_frame() has counted it

  void on(const message::JobKey& message) {
    ::prctl(PR_SET_DUMPABLE, 0);  // the key was in this memory: no core dump, no debugger
    const auto key = net::JobKey::from_bytes(std::as_bytes(std::span(message.bytes)));
    auto memfd = key ? key->to_memfd() : Result<UniqueFd>(fail(key.error()));
    if (!memfd) return give_up("the job's key: " + memfd.error().message());
    ranks_.take_key(std::move(*memfd));
  }

  void on(const message::StartAgents& message) { relay_.start(message); }
  void on(message::Routed&& message) { relay_.pass_down(std::move(message)); }

  void on(const message::HoldPorts& message) {
    const int count = std::clamp(message.count, 0, kMaxPorts);
    report(message::PortsHeld{held_ports_.hold(count)});
  }

  void on(message::LaunchJob&& message) { job_ = std::move(message.job); }

  void on(message::Launch&& message) {
    if (!ranks_.has_pmix()) return;  // that was reported
    node_ = std::move(message.node);
    if (ranks_.size() == 0) {
      announce();
      if (auto status = ranks_.register_job(job_, node_.node_index); !status)
        return give_up(status.error().message());
      rank_watch_.prepare(job_, node_);
      port_watch_.start(node_.server_ports);
      preemption_watch_.start(job_.preemption_watch);
      questions_.emplace(loop_, job_, [this](const message::AgentToHead& m) { report(m); });
    }
    for (const RankLaunch& launch : node_.ranks) {
      if (job_.measures_use) {
        gpu_watch_.add(launch);
        clock_watch_.add(launch);
      }
      if (auto status = ranks_.start(job_, node_, launch, rank_watch_, spawner_); !status)
        return give_up(start_failure(status.error(), launch.rank));
    }
    rank_watch_.watch_for_stalls();
  }

  /// If it fails, only the warning about other ddlruns is missing.
  void announce() {
    if (job_.scheduler_job.empty()) return;
    auto presence = JobPresence::announce(job_.scheduler_job, {job_.head_host, job_.head_pid});
    if (!presence) return;
    presence_.emplace(std::move(*presence));
    presence_->accept_in(loop_);
    for (const JobHead& other : presence_->others()) report(message::NodeShared{other.host, other.pid});
  }

  // ---- what the ranks do ----

  template <class Message>
    requires requires(LocalRanks& ranks, const Message& message) { ranks.on(message); }
  void on(const Message& message) {
    ranks_.on(message);
  }

  template <class Message>
    requires requires(RankWatch& watch, const Message& message) { watch.on(message); }
  void on(const Message& message) {
    rank_watch_.on(message);
  }

  void on(const message::ForwardedAnswer& answer) {
    if (questions_) questions_->on(answer);
  }

  void on(const message::Signal& message) {
    spawner_.send(message::SignalChildren{message.signal});
    // The time of a pause does not count.
    if (message.signal == SIGCONT && rank_watch_.watches()) rank_watch_.watch_for_stalls();
  }

  void on(const message::HostLost& message) {
    if (rank_watch_.tell(message)) may_report_ = Deadline::after(kReportTime);
    ranks_.on(message);
  }

  void on(const message::ElasticPlan& plan) {
    rank_watch_.forget_lost();
    ranks_.on(plan);
  }

  void on(const message::KillRank& message) { spawner_.send(message::SignalChild{message.rank, SIGKILL}); }

  void on(const message::End& message) {
    ranks_.give_up_questions();
    const auto begin = [this, message] { terminator_.begin(message.signal, message.grace_seconds); };
    if (message.grace_seconds <= 0 || may_report_.has_passed()) return begin();
    end_timer_ = loop_.after(may_report_.remaining(), begin);
  }

  void on(const message::Finish&) { take(AgentEvent::kFinish); }

  void on(const message::Pausing&) {
    head_heartbeat_.excuse();
    rank_watch_.pause();
  }

  void abandon_head(const std::string& how) {
    // The head may be alive, but cut off or stopped: it reads this when it can.
    report(message::AgentFailed{how + ", so the ranks here were ended", true});
    on_head_lost(how, kHeadAbandonedGraceSeconds);
  }

  /// SIGTERM: a resource manager sends it to all processes of a job that it ends, also to the ranks. The head must
  /// be notified before the ends of the ranks are reported.
  void on_termination_requested() {
    // An elastic job may go on without this host, and leaves it at a commit.
    has_failed_ = !is_elastic();
    report(message::AgentFailed{"its agent received SIGTERM, as sent by scancel or at a time limit", true,
                                SIGTERM});
    held_ends_.agent_was_terminated();
  }

  void on_head_lost(const std::string& how, double grace_seconds) {
    head_heartbeat_.stop();
    head_watch_.reset();
    take(AgentEvent::kHeadLost, how, grace_seconds);
  }

  // ---- from the spawner ----

  void on(const message::ChildStarted& message) {
    rank_watch_.has_started(message.rank, message.pid);
    report(message::RankStarted{message.rank, ranks_.incarnation(message.rank), message.pid});
    if (!job_.report_bindings && message.cpu_error == 0 && message.memory_error == 0) return;
    report(message::RankBound{message.rank, message.binding, message.cpu_error, message.memory_error});
  }

  void on(const message::ChildFailed& message) {
    RankOutcome outcome = start_failure(message, ranks_.command());
    outcome.incarnation = ranks_.incarnation(message.rank);
    rank_watch_.has_ended(message.rank);
    report(message::RankEnded{outcome});
  }

  void on(const message::ChildEnded& message) { held_ends_.take(message, ending_); }

  void report_end(const message::ChildEnded& message) {
    rank_watch_.has_ended(message.rank);
    // What the rank has started would be in the way of the process that takes its place.
    if (const auto pid = static_cast<pid_t>(rank_watch_.pid_of(message.rank)); is_elastic() && pid > 1)
      ::kill(-pid, SIGKILL);
    ranks_.drain(message.rank);
    RankOutcome outcome = rank_end(message, rank_watch_.pid_of(message.rank), ending_);
    outcome.incarnation = ranks_.incarnation(message.rank);
    outcome.calls = rank_watch_.calls(message.rank);
    outcome.clock_hertz = clock_watch_.hertz(message.rank);
    clock_watch_.end(message.rank);
    auto& awaited = outcome.calls.awaited;
    std::erase_if(awaited, [&](const AwaitedRank& one) { return one.rank >= job_.num_ranks; });
    const bool is_small = static_cast<std::size_t>(job_.num_ranks) <= RankCalls::kMaxAwaited;
    awaited.resize(std::min(awaited.size(), is_small ? RankCalls::kMaxAwaited : RankCalls::kMostLate));
    if (outcome.signal == SIGKILL && !outcome.ended_by_us)
      outcome.kill_explanation = memory_cgroup_.explain_kill();
    if (outcome.signal != 0 || outcome.exit_code != 0) {
      port_watch_.look();  // it may have failed because somebody else has its port: that comes first
      outcome.stderr_tail = ranks_.stderr_tail(message.rank);
      outcome.gone_rank = rank_watch_.gone_rank(message.rank);
      describe_carriage_return(ranks_.command(), outcome);
    }
    report(message::RankEnded{outcome});
  }

  /// For the head, which compares them.
  void report_mpi(int rank) {
    if (job_.num_ranks == 1) return;
    if (auto mpi = loaded_mpi(rank, rank_watch_.pid_of(rank))) report(*std::move(mpi));
  }

  /// PyTorch's store has begun to listen at MASTER_PORT. It and its clients look up the name of the other end of each
  /// connection. On one host that is localhost.
  void check_names(int port) {
    namespace env = contract::env;
    if (job_.node_names.size() > 1 && value_of(job_.environment, env::kMasterPort) == std::to_string(port))
      name_lookup_.start(value_of(job_.environment, env::kMasterAddr));
  }

  void on(const message::Leftovers& message) {
    leftovers_ = message.count;
    take(AgentEvent::kLeftovers);
  }

  void on(const message::AllGone&) {
    held_ends_.after_all([this] {
      terminator_.all_gone();
      port_watch_.stop();
      take(AgentEvent::kAllGone);
      check_all_sent();
    });
  }

  void on(const message::ChildStopped& message) {
    report(message::RankStopped{message.rank, message.signal});
  }

  /// All checks share a timer, because an idle job should wake up rarely.
  void check_regularly() {
    port_watch_.look();
    auto pause = spawner_.check();
    if (head_watch_ && !head_heartbeat_.is_excused()) {
      const bool is_stopped = head_watch_->is_stopped_for_good();
      pause = std::min(pause, head_watch_->pause());
      if (is_stopped) abandon_head("ddlrun itself was stopped");
    }
    check_timer_ = loop_.after(pause, [this] { check_regularly(); });
  }

  EventLoop loop_;
  std::string directory_;
  NodeFacts facts_;  // until they are sent
  const int allowed_cpus_;
  HeldPorts& held_ports_;
  MemoryCgroup memory_cgroup_ = MemoryCgroup::watch();
  NodeUsageWatch node_usage_;
  std::unique_ptr<Link> link_;
  SpawnerChannel spawner_;
  Terminator terminator_;
  Deadline may_report_ = Deadline::after({});  ///< ranks report a lost host until then
  EventLoop::Timer end_timer_;                 ///< of an End that comes before
  Relay relay_;
  const HeartbeatPace head_pace_;
  Heartbeat head_heartbeat_;
  std::optional<StoppedWatch> head_watch_;  // of a head on this host
  EventLoop::Timer check_timer_;
  JobLaunch job_;
  NodeLaunch node_;
  std::optional<JobPresence> presence_;
  RankWatch rank_watch_{loop_, [this](const message::AgentToHead& message) { report(message); },
                        [this] { return usage(); }};
  PortWatch port_watch_{loop_, [this](const std::string& how) { report(message::PortTaken{how}); },
                        [this](int port) { check_names(port); }};
  PreemptionWatch preemption_watch_{
      loop_, [this](const std::string& failure) { report(message::Preemption{failure}); }};
  NameLookup name_lookup_{loop_,
                          [this](const std::string& address) { report(message::NamesUnanswered{address}); }};
  GpuWatch gpu_watch_{loop_};
  ClockWatch clock_watch_{loop_};
  std::optional<QuestionForwarder> questions_;
  LocalRanks ranks_{loop_, [this](const message::AgentToHead& message) { report(message); },
                    [this](int rank) { report_mpi(rank); }, [this] { check_all_sent(); }};
  TerminationState ending_;
  HeldEnds held_ends_{loop_, !job_id_here(process_environment()).empty(),
                      [this](const message::ChildEnded& end) { report_end(end); }};
  AgentPhase phase_ = AgentPhase::kRunning;
  int leftovers_ = 0;
  bool has_failed_ = false;  // that was reported to the head, which ends the job
  bool is_head_silent_ = false;
};

}  // namespace

int run_agent(const std::string& session_directory, UniqueFd link, UniqueFd link_write,
              const std::function<void()>& before_threads, pid_t head) {
  ::prctl(PR_SET_NAME, "ddl-agent");
  ::setsid();  // the terminal's ^C and ^Z are for the head only
  // SIGUSR1 and SIGUSR2: a resource manager sends its warning to every process of a job, and it is meant for the
  // ranks.
  for (const int signal : {SIGINT, SIGHUP, SIGPIPE, SIGQUIT, SIGUSR1, SIGUSR2}) std::signal(signal, SIG_IGN);
  (void)become_subreaper();
  const rlimit ranks_open_files = open_files_limit();
  raise_open_files_limit();
  if (const Status enough = check_open_files_limit(); !enough) {
    // There may be too few descriptors for a loop and a link: the message goes to standard error.
    std::fprintf(stderr, "ddlrun agent on %s: %s\n", hostname().c_str(), enough.error().message().c_str());
    return 1;
  }
  const auto spawner_in = [&](const Status& ready) -> Result<SpawnerProcess> {
    DDL_TRY(ready);
    return start_spawner(session_directory, ranks_open_files, head > 0);
  };
  auto spawner = spawner_in(check_proc());
  if (!spawner) {
    EventLoop loop;
    const auto failure_link = make_stream_link(loop, std::move(link), std::move(link_write));
    message::send<message::AgentToHead>(*failure_link,
                                        message::AgentFailed{spawner.error().message(), false});
    failure_link->flush();
    return 1;
  }
  // In this order: probe_node() forks, and must not see the variables that are set for the PMIx library.
  NodeFacts facts = probe_node();
  // Until nothing of the job is left.
  HeldPorts held_ports;
  facts.held_ports = held_ports.hold(kPortsOfRank0);
  PmixServer::prepare_environment(session_directory);
  if (before_threads) before_threads();
  int status = 0;
  Requeue requeue;
  {
    Agent agent(std::move(link), std::move(link_write), std::move(*spawner), session_directory,
                std::move(facts), held_ports, head);
    status = agent.run();
    requeue = agent.requeue();
  }
  // The spawner ends when its channel closes; it is waited for so that nothing of the job outlives the agent.
  wait_for_descendants(Deadline::after(kSpawnerGoneDeadline));
  remove_session_directory(session_directory);
  if (!requeue.job.empty()) requeue_job(requeue);
  return status;
}

}  // namespace ddl::launcher
