#include "launcher/head/run_job.h"

#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <map>
#include <set>
#include <span>

#include "base/process_tree.h"
#include "base/text.h"
#include "contract/ddlrun.h"
#include "launcher/fleet/fleet.h"
#include "launcher/head/fleet_start.h"
#include "launcher/head/io_forwarding.h"
#include "launcher/head/job_inspector.h"
#include "launcher/head/job_planner.h"
#include "launcher/head/job_recording.h"
#include "launcher/head/pmix_relay.h"
#include "launcher/head/reports.h"
#include "launcher/head/stall_inspector.h"
#include "launcher/head/supervisor.h"
#include "launcher/node/job_presence.h"
#include "launcher/node/node_probe.h"
#include "launcher/output/printable_text.h"
#include "launcher/plan/placement.h"
#include "launcher/process/child.h"
#include "launcher/process/end_watch.h"
#include "launcher/protocol/codec.h"
#include "launcher/protocol/heartbeat.h"
#include "net/job_key.h"

namespace ddl::launcher {
namespace {

using Clock = std::chrono::steady_clock;

// After an agent has died, its spawner needs a moment to end the ranks; after this time the head kills them.
constexpr auto kCleanUpDeadline = std::chrono::milliseconds(1500);
constexpr auto kDrainDeadline = std::chrono::seconds(5);
// A stopped rank blocks all others: the job ends unless the rank is continued within this time.
constexpr int kStoppedSeconds = 4;
// The question for the ranks' activity that is asked for a sentence about a stall: its number, no pause, and tensors.
const message::AskActivity kAskForStall{0, 0, 256};
// Ranks of other hosts may notice that a host is lost before its heartbeats are missed: this is the time until then.
constexpr auto kRootCauseDeadline = kRemotePace.period * (kRemotePace.limit + 2);

// A rank that serves may notice that its clients have ended before their ends are reported.
constexpr auto kClientsDeadline = std::chrono::milliseconds(500);

/// One job from the first agent to the report: connects fleet, supervisor and output, decides nothing.
class JobRun : private SupervisorActions {
 public:
  JobRun(const JobSpec& spec, Allocation allocation, const Environment& head_environment,
         const Notices& notices)
      : spec_(spec),
        head_environment_(head_environment),
        notices_(notices),
        allocation_(std::move(allocation)),
        starters_(spec, allocation_, head_environment),
        fleet_(loop_, {spec.ssh_parallel, spec.start_timeout_seconds, spec.fan_out, starters_.ssh(),
                       starters_.group_starter()}),
        progress_(loop_, fleet_, allocation_, notices.progress) {}

  Result<JobReport> run() {
    DDL_TRY(check_proc());
    DDL_TRY(check_caller());
    DDL_TRY(fleet_.start(allocation_, starters_.by_node()));
    // From here on there may be threads.
    fleet_.listen({[this] { on_startup_complete(); },
                   [this](std::size_t node, net::Frame&& frame) { return on_report(node, frame); },
                   [this](std::size_t node, const std::string& how) { on_agent_lost(node, how); }});
    watch_signals();
    watch_caller();
    progress_.start();
    loop_.run();
    progress_.stop();
    stdin_.reset();
    inspector_.reset();  // nobody would answer any more
    // Nothing of the job may be left when this returns, whatever happened.
    fleet_.shut_down(Deadline::after(kCleanUpDeadline));
    const bool in_time = !output_ || abandon_output_ || output_->drain(Deadline::after(kDrainDeadline));
    if (!in_time) notices_.note("some output could not be written in time and is lost");
    if (supervisor_) notices_.detail(times_.text());
    if (error_) return fail(std::move(*error_));
    if (early_end_) return *early_end_;
    JobReport report = supervisor_->report();
    report.run_seconds = std::chrono::duration<double>(Clock::now() - began_).count();
    report.bindings = binding_report_.ranks();
    recording_->add_to(report);
    if (report.reason == EndReason::kSuccess) check_for_lost_output(report, in_time);
    return report;
  }

 private:
  // ---- start of the job ----

  void watch_signals() {
    std::signal(SIGPIPE, SIG_IGN);  // a closed pipe is an error of write(), which OutputRouter reports
    std::signal(SIGTTIN, SIG_IGN);  // reading the terminal in the background fails instead of stopping ddlrun
    std::vector<int> wanted = {SIGTERM, SIGQUIT, SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT, SIGCHLD};
    // A signal that the caller had ignored stays ignored.
    for (const int signal : {SIGINT, SIGHUP}) {
      if (!is_ignored(signal)) wanted.push_back(signal);
    }
    loop_.watch_signals(wanted, [this](int signal) { on_signal(signal); });
  }

  /// A number that was mistyped should not end the job.
  Status check_caller() const {
    if (spec_.end_with_pid == 0 || is_alive(spec_.end_with_pid)) return {};
    return refuse("--end-with: there is no process " + std::to_string(spec_.end_with_pid) + " on this host");
  }

  void watch_caller() {
    if (spec_.end_with_pid == 0) return;
    caller_.emplace(loop_, spec_.end_with_pid, [this] {
      if (!supervisor_ || draining_) return on_signal(SIGTERM);
      supervisor_->on_caller_ended("process " + std::to_string(spec_.end_with_pid) +
                                   " has ended, and the job with it (--end-with)");
    });
  }

  void on_startup_complete() {
    progress_.stop();
    if (!fleet_.failures().empty()) return end_early(start_failure_report(fleet_, allocation_));
    const auto& facts = fleet_.facts();
    for (std::size_t node = 0; node < facts.size(); ++node)
      notices_.detail(agent_sentence(allocation_.nodes[node].name, facts[node], fleet_.answer_seconds(node)));
    const std::size_t slowest = fleet_.slowest();
    times_.on_agents_ready(allocation_.nodes[slowest].name, fleet_.answer_seconds(slowest),
                           fleet_.connect_seconds(slowest));
    auto planner = JobPlanner::place_ranks(spec_, allocation_, facts, head_environment_);
    if (!planner) return give_up(planner.error());
    planner_.emplace(*std::move(planner));
    ranks_ = RankMap(planner_->placement(), fleet_.size());
    if (planner_->has_all_ports()) return launch();
    for (std::size_t node = 0; node < ranks_.fleet_indices().size(); ++node)
      fleet_.send(ranks_.fleet_index_of_node(node),
                  message::HoldPorts{static_cast<int>(planner_->wanted_ports(node))});
  }

  void launch() {
    auto planned = planner_->plan();
    if (!planned) return give_up(planned.error());
    LaunchPlan& plan = planned->launch;
    report_bindings(planner_->placement(), planned->bindings);
    report_reduced_limits();
    binding_report_ = BindingReport(plan, planned->bindings);
    supervisor_.emplace(planner_->supervised_job(), static_cast<SupervisorActions&>(*this));

    if (spec_.serves_gloo) gloo_store_.emplace(planner_->gloo_shape());
    inspect_stalls();
    if (auto status = record(); !status) return give_up(status.error());
    answer_questions(plan, planned->bindings);
    relay_.emplace(loop_, ranks_.rank_nodes(), [this](std::size_t node, const message::HeadToAgent& m) {
      fleet_.send(ranks_.fleet_index_of_node(node), m);
    });
    pmi_barriers_.emplace(ranks_.rank_nodes(), [this](std::size_t node, const message::HeadToAgent& m) {
      fleet_.send(ranks_.fleet_index_of_node(node), m);
    });
    if (auto status = open_output(plan.job); !status) return give_up(status.error());
    JobLaunch& job = plan.job;
    if (::isatty(STDOUT_FILENO) == 1 || ::isatty(STDERR_FILENO) == 1) job.flush_idle_lines = job.split_lines;
    // mpirun itself uses no CPUs of the job; its ranks announce themselves.
    if (!spec_.starts_mpirun) job.scheduler_job = scheduler_job_of_ranks(allocation_, head_environment_);
    job.head_host = hostname();
    job.head_pid = ::getpid();
    began_ = Clock::now();
    if (plan.nodes.size() > 1) {
      if (auto status = send_job_key(); !status) return give_up(status.error());
    }
    fleet_.broadcast(message::encode<message::HeadToAgent>(message::LaunchJob{job}));
    for (std::size_t node = 0; node < plan.nodes.size(); ++node)
      fleet_.send(ranks_.fleet_index_of_node(node), message::Launch{plan.nodes[node]});
    times_.on_launched(spec_.num_ranks);
    finish_idle_agents();
    open_stdin(plan);
    if (spec_.timeout_seconds > 0) {
      timeout_timer_ = loop_.after(
          std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(spec_.timeout_seconds)),
          [this] { supervisor_->on_timeout(); });
    }
  }

  void inspect_stalls() {
    stalls_.emplace(
        loop_,
        StallInspector::Settings{spec_.stall_warning_seconds, spec_.stall_shutdown_seconds,
                                 planner_->rank_hosts(), ranks_.rank_nodes()},
        StallInspector::Actions{[this] { fleet_.send_all(kAskForStall); },
                                [this](const std::string& sentence) { note(sentence); },
                                [this](const std::string& sentence) { supervisor_->on_stall(sentence); }});
  }

  Status record() {
    const Placement& placement = planner_->placement();
    std::vector<TimelineRank> ranks;
    for (const RankPlacement& rank : placement.ranks)
      ranks.push_back({placement.nodes[static_cast<std::size_t>(rank.node)].name, rank.node});
    recording_.emplace(
        loop_, std::move(ranks),
        JobRecording::Actions{
            [this](const message::AskEvents& ask) { fleet_.send(ranks_.fleet_index_of_rank(ask.rank), ask); },
            [this](const message::RecordTimeline& message) { fleet_.send_all(message); },
            [this]() -> const JobReport& { return supervisor_->report(); },
            [this](const std::string& sentence) { note(sentence); }});
    if (spec_.timeline_file.empty()) return {};
    auto planned = recording_->plan_timeline(spec_.timeline_file, spec_.timeline_bytes);
    if (!planned)
      return refuse(planned.error().during("the timeline (--timeline-filename, or DDL_TIMELINE)").message());
    return {};
  }

  void answer_questions(const LaunchPlan& plan, const std::vector<NodeBinding>& bindings) {
    inspector_.emplace(
        loop_, planned_job(spec_, plan, bindings),
        JobInspector::Actions{
            [this](const message::AskActivity& ask) { fleet_.send_all(ask); },
            [this](int node, const message::ForwardedAnswer& answer) {
              fleet_.send(ranks_.fleet_index_of_node(static_cast<std::size_t>(node)), answer);
            },
            [this]() -> const std::vector<RankOutcome>& { return supervisor_->report().ranks; },
            [this](const message::ChangeTimeline& change) { return recording_->change(change, spec_); }});
    if (const auto status = inspector_->listen(); !status)
      notices_.detail("ddlrun --inspect cannot ask this job here: " + status.error().message());
  }

  Status open_output(const JobLaunch& job) {
    auto output = OutputRouter::create(
        loop_, spec_, !job.split_lines, static_cast<std::size_t>(job.output_window),
        {[this](int rank, OutputStream stream, std::size_t bytes) {
           fleet_.send(ranks_.fleet_index_of_rank(rank),
                       message::OutputCredit{rank, stream, static_cast<std::int64_t>(bytes)});
         },
         [this] {
           reader_gone_ = true;
           supervisor_->on_output_broken();
         }});
    if (!output) return fail(output.error());
    output_ = std::move(*output);
    return {};
  }

  void open_stdin(const LaunchPlan& plan) {
    std::vector<std::size_t> readers;
    for (std::size_t node = 0; node < plan.nodes.size(); ++node) {
      const auto& ranks = plan.nodes[node].ranks;
      if (std::any_of(ranks.begin(), ranks.end(), [](const RankLaunch& rank) { return rank.reads_stdin; }))
        readers.push_back(ranks_.fleet_index_of_node(node));
    }
    if (readers.empty()) return;
    stdin_takers_ = StdinTakers(readers);
    stdin_.emplace(loop_, STDIN_FILENO,
                   StdinReader::Handlers{
                       [this](std::string&& bytes) { send_stdin(message::StdinData{std::move(bytes)}); },
                       [this] { send_stdin(message::StdinEof{}); }});
  }
  void send_stdin(const message::HeadToAgent& message) {
    for (const std::size_t node : stdin_takers_.nodes()) fleet_.send(node, message);
  }

  Status send_job_key() {
    ::prctl(PR_SET_DUMPABLE, 0);  // the key passes through this memory: no core dump, no debugger
    const auto key = net::JobKey::random();
    if (!key) return fail(key.error());
    message::JobKey message{
        std::string(reinterpret_cast<const char*>(key->bytes().data()), key->bytes().size())};
    for (const std::size_t fleet_index : ranks_.fleet_indices()) fleet_.send(fleet_index, message);
    net::wipe(std::as_writable_bytes(std::span(message.bytes)));
    return {};
  }

  void report_bindings(const Placement& placement, const std::vector<NodeBinding>& bindings) {
    // A rankfile may place two ranks on one core by mistake.
    const bool may_share = spec_.placed_ranks.empty() || spec_.oversubscribe;
    for (std::size_t node = 0; node < bindings.size(); ++node) {
      const std::string name = placement.nodes[node].name + ": ";
      const BindingNotes said = binding_notes(bindings[node], may_share);
      for (const std::string& text : said.details) notices_.detail(name + text);
      for (const std::string& text : said.notes) notices_.note(name + text);
    }
  }

  void report_reduced_limits() const {
    std::vector<std::pair<std::string, ResourceLimits>> hosts;
    for (const std::size_t node : ranks_.fleet_indices())
      hosts.emplace_back(allocation_.nodes[node].name, fleet_.facts()[node].hard_limits);
    for (const std::string& note : reduced_limit_notes(spec_.shell.soft_limits, hosts)) notices_.note(note);
  }

  // Hosts without a rank have nothing to do, unless they relay messages to other hosts: Finish leaves that running.
  void finish_idle_agents() {
    for (std::size_t fleet_index = 0; fleet_index < fleet_.size(); ++fleet_index) {
      if (!ranks_.node_at(fleet_index)) fleet_.send(fleet_index, message::Finish{});
    }
  }

  void give_up(Error error) {
    error_ = std::move(error);
    loop_.stop();
  }

  void end_early(JobReport report) {
    report.run_seconds = std::chrono::duration<double>(Clock::now() - began_).count();
    early_end_ = std::move(report);
    loop_.stop();
  }

  // ---- events ----

  Status on_report(std::size_t fleet_index, const net::Frame& frame) {
    auto report = message::decode<message::NodeReport>(frame);
    if (!report) return fail(std::move(report.error()));
    std::visit([this, fleet_index](auto& message) { on(fleet_index, message); }, *report);
    return {};
  }

  /// Messages come from another process: if one names a rank that is not on this node, the agent is given up.
  bool is_rank_at(std::size_t fleet_index, int rank) {
    if (supervisor_ && ranks_.is_rank_at(fleet_index, rank)) return true;
    on_agent_lost(fleet_index, "its agent sent a message about rank " + std::to_string(rank) +
                                   ", which does not run there");
    return false;
  }

  void on(std::size_t fleet_index, message::PortsHeld& m) {
    const auto node = ranks_.node_at(fleet_index);
    if (supervisor_ || !planner_ || !node) return;
    if (auto status = planner_->add_ports(*node, m.ports); !status) return give_up(status.error());
    if (planner_->has_all_ports()) launch();
  }
  void on(std::size_t fleet_index, const message::PortTaken& m) {
    if (supervisor_) supervisor_->on_port_taken(allocation_.nodes[fleet_index].name + ": " + m.how);
  }
  void on(std::size_t fleet_index, message::RankStarted& m) {
    if (!is_rank_at(fleet_index, m.rank)) return;
    notices_.detail("rank " + std::to_string(m.rank) + ": process " + std::to_string(m.pid) + " on " +
                    allocation_.nodes[fleet_index].name);
    times_.on_rank_started();
    supervisor_->on_rank_started(m.rank, m.pid);
  }
  template <class Binding>  // RankBound, VisibleGpus
    requires requires(BindingReport& report, Binding& binding) { report.add(binding); }
  void on(std::size_t fleet_index, Binding& m) {
    if (!is_rank_at(fleet_index, m.rank)) return;
    if (spec_.report_bindings) {
      for (const std::string& line : binding_report_.add(m)) note(line);
    }
    if (const std::string difference = binding_report_.difference(m); !difference.empty())
      note("warning: " + difference);
  }
  void on(std::size_t fleet_index, message::NodeShared& m) {
    if (!output_ || !sharing_.insert({m.host, m.pid}).second) return;
    note(shared_cpus_warning({m.host, m.pid}, allocation_.nodes[fleet_index].name,
                             scheduler_job_of_ranks(allocation_, head_environment_)));
  }
  void on(std::size_t fleet_index, message::RankProgress& m) {
    if (!is_rank_at(fleet_index, m.rank)) return;
    if (m.step == message::RankProgress::Step::kInitialised) {
      times_.on_rank_initialised();
    } else {
      times_.on_first_collective();
    }
  }
  void on(std::size_t fleet_index, message::RankEnded& m) {
    if (!is_rank_at(fleet_index, m.outcome.rank)) return;
    stopped_.erase(m.outcome.rank);
    supervisor_->on_rank_ended(std::move(m.outcome));
  }
  void on(std::size_t fleet_index, message::RankStopped& m) {
    if (!is_rank_at(fleet_index, m.rank)) return;
    stopped_.erase(m.rank);
    if (m.signal == 0) return supervisor_->on_rank_continued(m.rank);
    if (!supervisor_->on_rank_stopped(m.rank, m.signal, kStoppedSeconds)) return;
    stopped_[m.rank] = loop_.after(
        std::chrono::seconds(kStoppedSeconds),
        [this, rank = m.rank, signal = m.signal] { supervisor_->on_rank_stayed_stopped(rank, signal); });
  }
  void on(std::size_t, message::Stalled&) {
    if (stalls_ && output_) stalls_->on_stalled();
  }
  void on(std::size_t fleet_index, message::Activity& m) {
    const auto node = ranks_.node_at(fleet_index);
    if (!node) return;
    if (m.id != kAskForStall.id) {
      if (inspector_) inspector_->on_activity(static_cast<int>(*node), std::move(m));
    } else if (stalls_) {
      stalls_->on_activity(static_cast<int>(*node), std::move(m.ranks));
    }
  }
  void on(std::size_t fleet_index, message::Events& m) {
    if (!is_rank_at(fleet_index, m.rank)) return;
    recording_->on_events(m);
  }
  void on(std::size_t fleet_index, message::ForwardedRequest& m) {
    const auto node = ranks_.node_at(fleet_index);
    if (inspector_ && node) inspector_->on_request(static_cast<int>(*node), m);
  }
  void on(std::size_t fleet_index, message::AbortRequested& m) {
    if (is_rank_at(fleet_index, m.rank)) supervisor_->on_abort(m.rank, m.exit_code, m.text);
  }
  void on(std::size_t fleet_index, message::StdinCredit& m) {
    if (stdin_) stdin_->refund(stdin_takers_.take(fleet_index, m.bytes));
  }
  void on(std::size_t fleet_index, message::StdinClosed&) {
    if (!stdin_) return;
    stdin_->refund(stdin_takers_.close(fleet_index));
    if (stdin_takers_.is_empty()) stdin_->stop();
  }
  void on(std::size_t fleet_index, OutputChunk& chunk) {
    if (is_rank_at(fleet_index, chunk.rank)) output_->accept(std::move(chunk));
  }
  void on(std::size_t fleet_index, message::Finished& m) {
    if (const auto node = ranks_.node_at(fleet_index))
      supervisor_->on_finished(static_cast<int>(*node), m.leftovers_ended);
  }
  void on(std::size_t fleet_index, message::AgentFailed& m) {
    const auto node = ranks_.node_at(fleet_index);
    if (m.end_signal <= 0 || m.end_signal > SIGRTMAX || !supervisor_)
      return on_agent_failed(fleet_index, m.text, m.lost);
    if (node) {
      supervisor_->on_agent_termination_requested(
          static_cast<int>(*node), allocation_.nodes[fleet_index].name + ": " + m.text, m.end_signal);
    }
  }
  void on(std::size_t fleet_index, message::PmiBarrier& m) {
    const auto node = ranks_.node_at(fleet_index);
    if (pmi_barriers_ && node) pmi_barriers_->on(*node, std::move(m));
  }

  void on(std::size_t fleet_index, const message::AskGlooStore& m) {
    if (gloo_store_)
      fleet_.send(fleet_index, message::GlooStoreAnswered{m.id, gloo_store_->apply(m.request)});
  }

  template <class Message>
    requires requires(PmixRelay& relay, Message& message) { relay.on(0, std::move(message)); }
  void on(std::size_t fleet_index, Message& message) {
    const auto node = ranks_.node_at(fleet_index);
    if (relay_ && node) relay_->on(*node, std::move(message));
  }

  void on_agent_lost(std::size_t fleet_index, const std::string& why) {
    const std::string how = allocation_.nodes[fleet_index].name + ": " + why;
    if (!supervisor_) {
      JobReport report;
      report.reason = EndReason::kHostLost;
      report.exit_code = contract::kLostHost;
      report.message = how;
      return end_early(std::move(report));
    }
    if (const auto node = ranks_.node_at(fleet_index)) {
      if (inspector_) inspector_->on_lost(static_cast<int>(*node), why);
      recording_->on_lost(static_cast<int>(*node));
      tell_ranks(*node, why);
      supervisor_->on_agent_failed(static_cast<int>(*node), how, true);
    }
  }

  void on_agent_failed(std::size_t fleet_index, const std::string& text, bool lost) {
    const std::string sentence = allocation_.nodes[fleet_index].name + ": " + text;
    if (!supervisor_) return give_up(Error(ErrorCode::kSystem, sentence));
    const auto node = ranks_.node_at(fleet_index);
    if (!node) return;
    if (lost) tell_ranks(*node, text);
    supervisor_->on_agent_failed(static_cast<int>(*node), sentence, lost);
  }

  /// Before the signal that ends them, so that they report the lost node, and not a rank that the signal has ended.
  void tell_ranks(std::size_t node, const std::string& why) {
    const auto lost =
        lost_host(supervisor_->report().ranks, ranks_.rank_nodes(), static_cast<int>(node), why);
    if (lost) fleet_.send_all(*lost);
  }

  void on_signal(int signal) {
    if (signal == SIGCHLD) return fleet_.check_children();
    if (signal == SIGCONT && stdin_) stdin_->recheck_terminal();
    if (supervisor_ && !draining_) return supervisor_->on_signal(signal);
    if (signal == SIGUSR1 || signal == SIGUSR2 || signal == SIGCONT) return;
    if (signal == SIGTSTP) return stop_self();
    // While the last output is written, a signal ends the wait for its reader; before the ranks are started there
    // is nothing to end.
    abandon_output_ = draining_;
    if (supervisor_) return loop_.stop();
    JobReport report;
    report.reason = EndReason::kSignal;
    report.signal = signal;
    report.exit_code = contract::kSignalBase + signal;
    report.message = "no rank had been started";
    end_early(std::move(report));
  }

  /// The exit code must not state success if a part of the output is lost.
  void check_for_lost_output(JobReport& report, bool in_time) const {
    if (reader_gone_) {
      // Whether the reader ends before or after the ranks is a matter of timing: the report is the same.
      report.reason = EndReason::kSignal;
      report.signal = SIGPIPE;
      report.exit_code = contract::kSignalBase + SIGPIPE;
      report.message = "nobody reads ddlrun's output any more";
    } else if (abandon_output_ || !in_time || !output_->lost().empty() || !report.timeline_lost.empty()) {
      report.reason = EndReason::kOutputLost;
      report.exit_code = contract::kOutputLost;
      report.message = abandon_output_           ? "a signal ended the wait for its reader"
                       : !in_time                ? "its reader did not read it in time"
                       : output_->lost().empty() ? "the timeline: " + report.timeline_lost
                                                 : output_->lost();
    }
  }

  // ---- what the supervisor decides ----

  void end_ranks(int signal, double grace_seconds) override {
    recording_->ask_for_histories();
    fleet_.send_all(message::End{signal, grace_seconds});
  }
  void forward_signal(int signal) override { fleet_.send_all(message::Signal{signal}); }
  void finish() override {
    // The agents have what the ranks recorded until they end.
    const auto finish = [this] { fleet_.send_all(message::Finish{}); };
    if (!recording_->write_timeline(finish)) finish();
  }
  void wait_for_root_cause() override {
    root_cause_timer_ = loop_.after(kRootCauseDeadline, [this] { supervisor_->on_root_cause_timeout(); });
  }

  void wait_for_clients() override {
    root_cause_timer_ = loop_.after(kClientsDeadline, [this] { supervisor_->on_root_cause_timeout(); });
  }

  void stop_self() override {
    progress_.stop();
    fleet_.send_all(message::Pausing{});
    fleet_.flush();
    ::raise(SIGSTOP);
  }

  void done() override {
    draining_ = true;
    recording_->give_up();
    for (const std::string& line : binding_report_.take()) note(line);
    timeout_timer_.cancel();
    root_cause_timer_.cancel();
    output_->when_idle([this] { loop_.stop(); });
  }

  void note(const std::string& sentence) override {
    if (!spec_.quiet) output_->print("ddlrun: " + printable_text(sentence));
  }

  const JobSpec& spec_;
  const Environment& head_environment_;
  const Notices& notices_;
  EventLoop loop_;
  Allocation allocation_;
  NodeStarters starters_;
  Fleet fleet_;
  FleetProgress progress_;
  std::optional<JobPlanner> planner_;  ///< once all agents have answered
  RankMap ranks_;
  std::optional<Supervisor> supervisor_;
  std::optional<PmixRelay> relay_;
  std::optional<PmiBarriers> pmi_barriers_;
  std::optional<GlooStore> gloo_store_;
  std::optional<StallInspector> stalls_;
  std::optional<JobInspector> inspector_;
  std::optional<JobRecording> recording_;
  std::unique_ptr<OutputRouter> output_;
  std::optional<StdinReader> stdin_;
  StdinTakers stdin_takers_;                 ///< by index in the fleet
  std::optional<EndWatch> caller_;           ///< of JobSpec::end_with_pid
  std::map<int, EventLoop::Timer> stopped_;  ///< by rank that was stopped: when the job ends for it
  std::set<std::pair<std::string, std::int64_t>> sharing_;  ///< other ddlruns that the user was warned of
  BindingReport binding_report_;
  StartTimes times_;
  EventLoop::Timer timeout_timer_;
  EventLoop::Timer root_cause_timer_;
  Clock::time_point began_ = Clock::now();
  std::optional<Error> error_;
  std::optional<JobReport> early_end_;  ///< it ended before there was a supervisor
  bool draining_ = false;
  bool abandon_output_ = false;
  bool reader_gone_ = false;  ///< of standard output
};

}  // namespace

Result<JobReport> run_job(const JobSpec& spec, const Allocation& allocation,
                          const Environment& head_environment, const Notices& notices) {
  DDL_TRY(check_open_files_limit());
  return JobRun(spec, allocation, head_environment, notices).run();
}

}  // namespace ddl::launcher
