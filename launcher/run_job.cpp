#include "launcher/run_job.h"

#include <unistd.h>

#include <csignal>
#include <random>

#include "base/text.h"
#include "contract/exit_code.h"
#include "launcher/agent/node_probe.h"
#include "launcher/fleet/fleet.h"
#include "launcher/fleet/local/local_starter.h"
#include "launcher/head/output_router.h"
#include "launcher/head/stdin_reader.h"
#include "launcher/supervise/supervisor.h"

namespace ddl::launcher {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kStartDeadline = std::chrono::seconds(30);
// After an agent has died its spawner needs a moment to end the ranks; then the head does it.
constexpr auto kCleanUpDeadline = std::chrono::milliseconds(1500);
constexpr auto kDrainDeadline = std::chrono::seconds(5);

std::string make_job_id() {
  std::random_device random;
  return "ddlrun-" + std::to_string(::getpid()) + "-" + std::to_string(random());
}

std::vector<int> slots_of(const Allocation& allocation, const std::vector<NodeFacts>& facts) {
  std::vector<int> slots;
  for (std::size_t i = 0; i < facts.size(); ++i)
    slots.push_back(allocation.nodes[i].slots.value_or(facts[i].slots));
  return slots;
}

// The facts of the nodes that got a rank, in the placement's order.
std::vector<NodeFacts> facts_of(const Placement& placement, const Allocation& allocation,
                                const std::vector<NodeFacts>& facts) {
  std::vector<NodeFacts> placed;
  for (const PlacedNode& node : placement.nodes) {
    for (std::size_t i = 0; i < allocation.nodes.size(); ++i) {
      if (allocation.nodes[i].name == node.name) placed.push_back(facts[i]);
    }
  }
  return placed;
}

/// One job from the first agent to the last word: wires fleet, supervisor and output together, decides nothing.
class JobRun : private SupervisorActions {
 public:
  JobRun(const JobSpec& spec, const Environment& head_environment, const Notices& notices)
      : spec_(spec), head_environment_(head_environment), notices_(notices), fleet_(loop_) {}

  Result<JobReport> run() {
    allocation_ = local_allocation(hostname());
    const auto starter = make_local_starter();
    DDL_TRY(fleet_.start(allocation_, *starter));
    // From here on there may be threads.
    fleet_.listen(
        {[this] { on_fleet_ready(); },
         [this](std::size_t node, message::Any&& m) { std::visit([&](auto& one) { on(node, one); }, m); },
         [this](std::size_t node, const std::string& how) { on_agent_lost(node, how); }});
    take_signals();
    start_timer_ = loop_.after(kStartDeadline, [this] {
      give_up(Error(ErrorCode::kTimeout,
                    "the agent on " + allocation_.nodes.front().name + " has not answered within 30 s"));
    });
    loop_.run();
    stdin_.reset();
    // Nothing of the job may be left when this returns, whatever happened.
    fleet_.shut_down(Deadline::after(kCleanUpDeadline));
    if (output_ && !abandon_output_ && !output_->drain(Deadline::after(kDrainDeadline))) {
      notices_.note("some output could not be written in time and is lost");
    }
    if (error_) return fail(std::move(*error_));
    if (early_end_) return *early_end_;
    JobReport report = supervisor_->report();
    report.run_seconds = std::chrono::duration<double>(Clock::now() - began_).count();
    return report;
  }

 private:
  // ---- the way to a running job ----

  void take_signals() {
    std::signal(SIGPIPE, SIG_IGN);  // a gone reader is an error of write(), told by the output
    std::signal(SIGTTIN, SIG_IGN);  // reading the terminal in the background fails instead of stopping ddlrun
    std::vector<int> wanted = {SIGTERM, SIGQUIT, SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT};
    // What the caller had ignored stays ignored (nohup, a shell's background job).
    for (const int signal : {SIGINT, SIGHUP}) {
      struct sigaction action {};
      if (::sigaction(signal, nullptr, &action) == 0 && action.sa_handler != SIG_IGN)
        wanted.push_back(signal);
    }
    loop_.watch_signals(wanted, [this](int signal) { on_signal(signal); });
  }

  void on_fleet_ready() {
    start_timer_.cancel();
    const auto& facts = fleet_.facts();
    for (const NodeFacts& node : facts) {
      notices_.detail(node.hostname + ": agent " + std::to_string(node.agent_pid) + ", " +
                      counted(node.allowed_cpus, "CPU") + " on " + counted(node.allowed_cores, "core") +
                      ", " + node.kernel);
    }
    auto placement = place(spec_, allocation_, slots_of(allocation_, facts));
    if (!placement) return give_up(placement.error());
    const auto placed_facts = facts_of(*placement, allocation_, facts);
    LaunchPlan plan = make_launch_plan(spec_, *placement, placed_facts, head_environment_, make_job_id());

    Supervisor::Job job;
    for (const RankPlacement& rank : placement->ranks) {
      job.rank_hosts.push_back(placement->nodes[static_cast<std::size_t>(rank.node)].name);
      job.rank_nodes.push_back(rank.node);
    }
    job.num_nodes = static_cast<int>(plan.nodes.size());
    job.kill_grace_seconds = spec_.kill_grace_seconds;
    supervisor_.emplace(std::move(job), static_cast<SupervisorActions&>(*this));

    if (auto status = open_output(plan.nodes.front()); !status) return give_up(status.error());
    if (::isatty(STDOUT_FILENO) == 1 || ::isatty(STDERR_FILENO) == 1) {
      for (NodeLaunch& node : plan.nodes) node.flush_idle_lines = node.split_lines;
    }
    began_ = Clock::now();
    for (std::size_t node = 0; node < plan.nodes.size(); ++node)
      fleet_.send(node, message::Launch{plan.nodes[node]});
    open_stdin();
    if (spec_.timeout_seconds > 0) {
      timeout_timer_ = loop_.after(
          std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(spec_.timeout_seconds)),
          [this] { supervisor_->on_timeout(); });
    }
  }

  Status open_output(const NodeLaunch& node) {
    auto output = OutputRouter::create(
        loop_, spec_, !node.split_lines, static_cast<std::size_t>(node.output_window),
        {[this](int rank, OutputStream stream, std::size_t bytes) {
           fleet_.send(0, message::OutputCredit{rank, stream, static_cast<std::int64_t>(bytes)});
         },
         [this] { supervisor_->on_output_broken(); }});
    if (!output) return fail(output.error());
    output_ = std::move(*output);
    return {};
  }

  void open_stdin() {
    if (spec_.stdin_target == StdinTarget::kNone) return;
    stdin_.emplace(loop_, STDIN_FILENO,
                   StdinReader::Handlers{
                       [this](std::string&& bytes) { fleet_.send_all(message::StdinData{std::move(bytes)}); },
                       [this] { fleet_.send_all(message::StdinEof{}); }});
  }

  void give_up(Error error) {
    error_ = std::move(error);
    loop_.stop();
  }

  // ---- events ----

  void on(std::size_t, message::RankStarted& m) {
    notices_.detail("rank " + std::to_string(m.rank) + ": process " + std::to_string(m.pid));
    supervisor_->on_rank_started(m.rank, m.pid);
  }
  void on(std::size_t, message::RankEnded& m) { supervisor_->on_rank_ended(std::move(m.outcome)); }
  void on(std::size_t, message::AbortRequested& m) { supervisor_->on_abort(m.rank, m.exit_code, m.text); }
  void on(std::size_t, message::StdinCredit& m) {
    if (stdin_) stdin_->refund(m.bytes);
  }
  void on(std::size_t, message::StdinClosed&) {
    if (stdin_) stdin_->stop();
  }
  void on(std::size_t, OutputChunk& chunk) { output_->accept(std::move(chunk)); }
  void on(std::size_t node, message::Finished& m) {
    supervisor_->on_finished(static_cast<int>(node), m.leftovers_ended);
  }
  void on(std::size_t node, message::AgentFailed& m) {
    if (!supervisor_)
      return give_up(Error(ErrorCode::kSystem, m.text + ", on " + allocation_.nodes[node].name));
    supervisor_->on_agent_failed(static_cast<int>(node), m.text + ", on " + allocation_.nodes[node].name,
                                 m.lost);
  }
  template <class Other>
  void on(std::size_t, Other&) {}

  void on_agent_lost(std::size_t node, const std::string& how) {
    if (!supervisor_) return give_up(Error(ErrorCode::kClosed, how));
    supervisor_->on_agent_failed(static_cast<int>(node), how, true);
  }

  void on_signal(int signal) {
    if (signal == SIGCONT && stdin_) stdin_->recheck_terminal();
    if (supervisor_ && !draining_) return supervisor_->on_signal(signal);
    if (signal == SIGUSR1 || signal == SIGUSR2 || signal == SIGCONT) return;
    if (signal == SIGTSTP) return stop_self();
    // Before the ranks are started there is nobody to ask; when only output is left, nobody reads it.
    abandon_output_ = draining_;
    if (!supervisor_) {
      early_end_.emplace();
      early_end_->reason = EndReason::kSignal;
      early_end_->signal = signal;
      early_end_->exit_code = contract::kSignalBase + signal;
      early_end_->message = "no rank had been started";
      early_end_->run_seconds = std::chrono::duration<double>(Clock::now() - began_).count();
    }
    loop_.stop();
  }

  // ---- what the supervisor decides ----

  void end_ranks(int signal, double grace_seconds) override {
    fleet_.send_all(message::End{signal, grace_seconds});
  }
  void forward_signal(int signal) override { fleet_.send_all(message::Signal{signal}); }
  void finish() override { fleet_.send_all(message::Finish{}); }

  void stop_self() override {
    fleet_.flush();
    ::raise(SIGSTOP);
  }

  void done() override {
    draining_ = true;
    timeout_timer_.cancel();
    output_->when_idle([this] { loop_.stop(); });
  }

  void note(const std::string& sentence) override {
    if (!spec_.quiet) output_->print("ddlrun: " + sentence);
  }

  const JobSpec& spec_;
  const Environment& head_environment_;
  const Notices& notices_;
  EventLoop loop_;
  Allocation allocation_;
  Fleet fleet_;
  std::optional<Supervisor> supervisor_;
  std::unique_ptr<OutputRouter> output_;
  std::optional<StdinReader> stdin_;
  EventLoop::Timer start_timer_;
  EventLoop::Timer timeout_timer_;
  Clock::time_point began_ = Clock::now();
  std::optional<Error> error_;
  std::optional<JobReport> early_end_;  ///< told to end before there was a supervisor
  bool draining_ = false;
  bool abandon_output_ = false;
};

}  // namespace

Result<JobReport> run_job(const JobSpec& spec, const Environment& head_environment, const Notices& notices) {
  return JobRun(spec, head_environment, notices).run();
}

Result<LaunchPlan> dry_run(const JobSpec& spec, const Environment& head_environment) {
  NodeFacts facts = probe_node();
  facts.free_port = 0;
  const Allocation allocation = local_allocation(facts.hostname);
  auto placement = place(spec, allocation, slots_of(allocation, {facts}));
  if (!placement) return fail(placement.error());
  return make_launch_plan(spec, *placement, {facts}, head_environment, "ddlrun");
}

}  // namespace ddl::launcher
