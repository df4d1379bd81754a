#include "launcher/head/running_job.h"

#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <tuple>

#include "base/printable_text.h"
#include "contract/environment.h"
#include "launcher/gloo/gloo_store.h"
#include "launcher/head/io_forwarding.h"
#include "launcher/head/job_inspector.h"
#include "launcher/head/job_recording.h"
#include "launcher/head/pmix_relay.h"
#include "launcher/head/stall_inspector.h"
#include "launcher/node/job_presence.h"
#include "launcher/node/node_probe.h"
#include "launcher/protocol/codec.h"
#include "launcher/protocol/heartbeat.h"
#include "net/job_key.h"

namespace ddl::launcher {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kDrainDeadline = std::chrono::seconds(5);
// A stopped rank blocks all others: the job ends unless the rank is continued within this time.
constexpr int kStoppedSeconds = 4;
// Ranks of other hosts may notice that a host is lost before its heartbeats are missed: this is the time until then.
constexpr auto kRootCauseDeadline = kRemotePace.period * (kRemotePace.limit + 2);
// Of the collector of events that a launch sends to its job; those of JobRecording have low numbers.
constexpr std::int64_t kTimelineOfLaunch = 1'000'000;
// A rank that serves may notice that its clients have ended before their ends are reported.
constexpr auto kClientsDeadline = std::chrono::milliseconds(500);

std::vector<TimelineRank> timeline_ranks(const Supervisor::Job& job) {
  std::vector<TimelineRank> ranks;
  for (int rank = 0; rank < std::ssize(job.rank_hosts); ++rank)
    ranks.push_back({job.rank_hosts[rank], job.rank_nodes[rank]});
  return ranks;
}

/// The nodes whose ranks read ddlrun's standard input.
std::vector<int> stdin_readers(const LaunchPlan& plan) {
  std::vector<int> readers;
  for (int node = 0; node < std::ssize(plan.nodes); ++node) {
    const auto& ranks = plan.nodes[node].ranks;
    if (std::any_of(ranks.begin(), ranks.end(), [](const RankLaunch& rank) { return rank.reads_stdin; }))
      readers.push_back(node);
  }
  return readers;
}

/// Connects fleet, supervisor, output and those who answer questions; decides nothing.
class Job : public RunningJob, private SupervisorActions {
 public:
  Job(const JobContext& job, JobPlanner&& planner, const JobPlanner::Plan& planned)
      : context_(job),
        planner_(std::move(planner)),
        ranks_(planner_.supervised_job()),
        relay_(job.loop, ranks_.rank_nodes,
               [this](int node, const message::HeadToAgent& m) { fleet_.send(node, m); }),
        pmi_barriers_(ranks_.rank_nodes,
                      [this](int node, const message::HeadToAgent& m) { fleet_.send(node, m); }),
        gloo_store_(planner_.gloo_shape()),
        stalls_(
            job.loop,
            {spec_.stall_warning_seconds, spec_.stall_shutdown_seconds, ranks_.rank_hosts, ranks_.rank_nodes},
            {[this] { fleet_.send_all(kAskForStall); },
             [this](const std::string& sentence) { note(sentence); },
             [this](const Stall& stall) { supervisor_.on_stall(stall.sentence); }}),
        recording_(job.loop, timeline_ranks(ranks_),
                   {[this](const message::AskEvents& ask) { fleet_.send(node_of(ask.rank), ask); },
                    [this](const message::RecordTimeline& message) { fleet_.send_all(message); },
                    [this]() -> const JobReport& { return supervisor_.report(); },
                    [this](const std::string& sentence) { note(sentence); }}),
        inspector_(
            job.loop, planned_job(spec_, planned.launch, planned.bindings),
            {[this](const message::AskActivity& ask) { fleet_.send_all(ask); },
             [this](int node, const message::ForwardedAnswer& answer) { fleet_.send(node, answer); },
             [this] { return supervisor_.report().ranks; },
             [this](JobDescription& known) { describe(known); },
             [this](const message::ChangeTimeline& change) { return recording_.change(change, spec_); }}),
        exporter_(job.loop, notices_.metrics,
                  [this](MetricsExport::OnSample tell) { inspector_.ask(std::move(tell)); }),
        stdin_takers_(stdin_readers(planned.launch)),
        binding_report_(planned.launch, planned.bindings) {}

  Status begin(JobPlanner::Plan&& planned) {
    report_bindings(planned.bindings);
    report_reduced_limits();
    supervisor_.launch(ranks_, *this);
    if (!spec_.timeline_file.empty() && context_.elastic_job == nullptr) {
      auto timeline = recording_.plan_timeline(spec_.timeline_file, spec_.timeline_bytes);
      if (!timeline)
        return refuse(
            timeline.error().during("the timeline (--timeline-filename, or DDL_TIMELINE)").message());
    }
    if (const auto status = context_.elastic_job == nullptr ? inspector_.listen() : Status(); !status)
      notices_.detail("ddlrun --inspect cannot ask this job here: " + status.error().message());
    if (context_.elastic_job == nullptr) DDL_TRY(open_exporter(planned.launch.job.job_id));
    DDL_TRY(open_output(planned.launch.job));
    if (context_.elastic_job != nullptr) {
      make_part_of_job(planned.launch);
    }
    DDL_TRY(send_launch(planned.launch));
    if (context_.elastic_job != nullptr)
      context_.elastic_job->deliver([this](const message::MemberOrder& order) { on_order(order); });
    if (context_.elastic_job == nullptr) exporter_.begin();
    open_stdin();
    if (spec_.timeout_seconds > 0) {
      timeout_timer_ =
          loop_.after(clock_duration(spec_.timeout_seconds), [this] { supervisor_.on_timeout(); });
    }
    return {};
  }

  void run() override {
    loop_.run();
    stdin_.reset();
    inspector_.close();  // nobody would answer any more
    exporter_.end([this] { return inspector_.concluded(hosts_); });
  }

  JobReport conclude() override {
    if (is_output_awaited_ && !output_->drain(Deadline::after(kDrainDeadline))) {
      notices_.note("some output could not be written in time and is lost");
      supervisor_.on_output_lost("its reader did not read it in time");
    }
    if (!output_->lost().empty()) supervisor_.on_output_lost(output_->lost());
    if (!recording_.lost().empty()) supervisor_.on_output_lost("the timeline: " + recording_.lost());
    if (spec_.starts_mpirun) look_for_cancellation();
    notices_.detail(context_.times.text());
    JobReport report = supervisor_.report();
    report.run_seconds = std::chrono::duration<double>(Clock::now() - began_).count();
    report.planned = binding_report_.all_planned();
    report.bindings = binding_report_.ranks();
    report.start = context_.times.phases();
    report.hosts = hosts_;
    report.stalls = stalls_.sentences();
    recording_.add_to(report);
    if (spec_.starts_mpirun) {
      // The only rank of this job is mpirun itself, which is not a rank of the user.
      report.ranks.clear();
      report.planned.clear();
      report.first_failure.reset();
    }
    return report;
  }

  Status on_report(int node, const net::Frame& frame) override {
    DDL_ASSIGN(report, message::decode<message::NodeReport>(frame));
    std::visit([this, node](auto& message) { on(node, message); }, report);
    return {};
  }

  void on_agent_lost(int node, const std::string& why) override {
    inspector_.on_lost(node, why);
    recording_.on_lost(node);
    tell_ranks(node, why);
    supervisor_.on_agent_failed(node, fleet_.name(node) + ": " + why, true);
  }

  void on_signal(int signal) override {
    if (signal == SIGCONT && stdin_) stdin_->recheck_terminal();
    supervisor_.on_signal(signal);
  }

  void on_caller_ended(const std::string& text) override { supervisor_.on_caller_ended(text); }

 private:
  // ---- the launch ----

  Status open_output(const JobLaunch& job) {
    auto output = OutputRouter::create(
        loop_, spec_, !job.split_lines, job.output_window,
        {[this](int rank, OutputStream stream, std::size_t bytes) {
           fleet_.send(node_of(rank), message::OutputCredit{rank, stream, static_cast<std::int64_t>(bytes)});
         },
         [this] { supervisor_.on_output_broken(); }});
    if (!output) return fail(output.error());
    output_ = std::move(*output);
    return {};
  }

  /// A job that has begun is worth more than its monitoring.
  Status open_exporter(const std::string& job_id) {
    Status opened = exporter_.open(job_id);
    if (opened || spec_.generation.generation == 0) return opened;
    notices_.note(opened.error().message() + "; this generation is not measured there");
    return {};
  }

  void describe(JobDescription& job) const {
    job.start = context_.times.phases();
    job.scheduler_job = scheduler_job_;
    job.traffic = traffic_;
    std::tie(job.traffic.sent_bytes, job.traffic.received_bytes) = fleet_.traffic();
    if (const EndReason reason = supervisor_.report().reason; is_failure(reason))
      job.failures[name_of(reason)] = 1;
  }

  /// Leaves out the ranks that JobSpec::started_ranks does not name. Only the local rank of the others is known.
  void make_part_of_job(LaunchPlan& plan) const {
    for (NodeLaunch& node : plan.nodes) {
      std::erase_if(node.ranks, [this](const RankLaunch& rank) {
        return !ranks_.is_left_out.empty() && ranks_.is_left_out[rank.rank];
      });
      for (RankLaunch& rank : node.ranks) {
        for (const char* const name : {contract::env::kLocalRank, contract::env::kTorchLocalRank})
          rank.environment[name] = std::to_string(rank.local_rank);
      }
    }
  }

  /// Of the elastic job that this launch belongs to.
  void on_order(const message::MemberOrder& order) {
    std::visit([this](const auto& message) { fleet_.send_all(message); }, order);
  }

  /// False: this is no launch of an elastic job.
  template <class Message>
  bool report_to_job(const Message& message) {
    if (context_.elastic_job != nullptr) context_.elastic_job->report(message);
    return context_.elastic_job != nullptr;
  }

  Status send_launch(LaunchPlan& plan) {
    JobLaunch& job = plan.job;
    if (::isatty(STDOUT_FILENO) == 1 || ::isatty(STDERR_FILENO) == 1) job.flush_idle_lines = job.split_lines;
    // mpirun itself uses no CPUs of the job; its ranks announce themselves.
    if (!spec_.starts_mpirun) job.scheduler_job = scheduler_job_;
    job.head_host = hostname();
    // All launches of an elastic job are one job for those who share its nodes.
    job.head_pid = context_.elastic_job != nullptr ? ::getppid() : ::getpid();
    if (context_.elastic_job != nullptr) job.elastic_job_id = context_.elastic_job->job_id();
    began_ = Clock::now();
    if (plan.nodes.size() > 1 || context_.elastic_job != nullptr) DDL_TRY(send_job_key());
    fleet_.broadcast(message::encode<message::HeadToAgent>(message::LaunchJob{job}));
    for (int node = 0; node < std::ssize(plan.nodes); ++node)
      fleet_.send(node, message::Launch{plan.nodes[node]});
    context_.times.on_launched(spec_.num_ranks);
    return {};
  }

  Status send_job_key() {
    ::prctl(PR_SET_DUMPABLE, 0);  // the key passes through this memory: no core dump, no debugger
    std::optional<net::JobKey> own;
    if (context_.elastic_job == nullptr) {
      DDL_ASSIGN(random, net::JobKey::random());
      own = std::move(random);
    }
    const std::span<const std::byte> key = (own ? *own : context_.elastic_job->key()).bytes();
    message::JobKey message{std::string(reinterpret_cast<const char*>(key.data()), key.size())};
    fleet_.send_all(message);
    net::wipe(std::as_writable_bytes(std::span(message.bytes)));
    return {};
  }

  void open_stdin() {
    if (stdin_takers_.is_empty()) return;
    stdin_.emplace(loop_, STDIN_FILENO,
                   StdinReader::Handlers{
                       [this](std::string&& bytes) { send_stdin(message::StdinData{std::move(bytes)}); },
                       [this] { send_stdin(message::StdinEof{}); }});
  }
  void send_stdin(const message::HeadToAgent& message) {
    for (const int node : stdin_takers_.nodes()) fleet_.send(node, message);
  }

  void report_bindings(const std::vector<NodeBinding>& bindings) {
    // A rankfile may place two ranks on one core by mistake.
    const bool may_share = spec_.placed_ranks.empty() || spec_.oversubscribe;
    for (int node = 0; node < std::ssize(bindings); ++node) {
      const std::string name = fleet_.name(node) + ": ";
      const BindingNotes said = binding_notes(bindings[node], may_share);
      for (const std::string& text : said.details) notices_.detail(name + text);
      for (const std::string& text : said.notes) notices_.note(name + text);
    }
  }

  void report_reduced_limits() const {
    std::vector<std::pair<std::string, ResourceLimits>> hosts;
    for (int node = 0; node < std::ssize(planner_.facts()); ++node)
      hosts.emplace_back(fleet_.name(node), planner_.facts()[node].hard_limits);
    for (const std::string& note : reduced_limit_notes(spec_.shell.soft_limits, hosts)) notices_.note(note);
  }

  // ---- what agents report ----

  int node_of(int rank) const { return ranks_.rank_nodes.at(rank); }

  /// Messages come from another process: if one names a rank that is not on this node, the agent is given up.
  bool is_rank_on(int node, int rank) {
    if (supervisor_.is_rank_on(node, rank)) return true;
    on_agent_lost(
        node, "its agent sent a message about rank " + std::to_string(rank) + ", which does not run there");
    return false;
  }

  void on(int, const message::PortsHeld&) {}  // JobStart has all
  void on(int node, const message::PortTaken& m) {
    supervisor_.on_port_taken(fleet_.name(node) + ": " + m.how);
  }
  void on(int node, message::RankStarted& m) {
    if (!is_rank_on(node, m.rank)) return;
    notices_.detail("rank " + std::to_string(m.rank) + ": process " + std::to_string(m.pid) + " on " +
                    fleet_.name(node));
    context_.times.on_rank_started();
    report_to_job(m);
    supervisor_.on_rank_started(m.rank, m.incarnation, m.pid);
  }
  template <class Binding>  // RankBound, VisibleGpus
    requires requires(BindingReport& report, Binding& binding) { report.add(binding); }
  void on(int node, Binding& m) {
    if (!is_rank_on(node, m.rank)) return;
    if (spec_.report_bindings) {
      for (const std::string& line : binding_report_.add(m)) note(line);
    }
    if (const std::string difference = binding_report_.difference(m); !difference.empty())
      note("warning: " + difference);
  }
  void on(int node, const message::NodeShared& m) {
    if (sharing_.insert({m.host, m.pid}).second)
      note(shared_cpus_warning({m.host, m.pid}, fleet_.name(node), scheduler_, scheduler_job_));
  }
  void on(int node, const message::RankProgress& m) {
    if (!is_rank_on(node, m.rank)) return;
    if (m.step == message::RankProgress::Step::kInitialised) {
      context_.times.on_rank_initialised();
    } else {
      context_.times.on_first_collective();
    }
  }
  void on(int node, message::RankEnded& m) {
    if (!is_rank_on(node, m.outcome.rank)) return;
    stopped_.erase(m.outcome.rank);
    supervisor_.on_rank_ended(m.outcome);
    report_to_job(m);
  }
  void on(int node, const message::RankStopped& m) {
    if (!is_rank_on(node, m.rank)) return;
    stopped_.erase(m.rank);
    if (m.signal == 0) return supervisor_.on_rank_continued(m.rank);
    if (!supervisor_.on_rank_stopped(m.rank, m.signal, kStoppedSeconds)) return;
    stopped_[m.rank] = loop_.after(
        std::chrono::seconds(kStoppedSeconds),
        [this, rank = m.rank, signal = m.signal] { supervisor_.on_rank_stayed_stopped(rank, signal); });
  }
  void on(int, const message::Stalled& m) {
    if (report_to_job(m)) return;
    stalls_.on_stalled();
  }
  void on(int node, message::Activity& m) {
    if (report_to_job(m)) return;
    if (m.id == kAskForStall.id) {
      stalls_.on_activity(node, std::move(m.ranks));
    } else {
      inspector_.on_activity(node, std::move(m));
    }
  }
  void on(int node, const message::Events& m) {
    if (!is_rank_on(node, m.rank)) return;
    if (timeline_of_launch_ && m.id == timeline_of_launch_->id()) {
      report_to_job(m);
      timeline_of_launch_->on_events(m);
    }
    recording_.on_events(m);
  }
  void on(int node, const message::ForwardedRequest& m) {
    if (report_to_job(m)) return;
    inspector_.on_request(node, m);
  }
  void on(int node, const message::AbortRequested& m) {
    if (!is_rank_on(node, m.rank)) return;
    report_to_job(m);
    supervisor_.on_abort(m.rank, m.exit_code, m.text);
  }
  void on(int node, const message::SpawnRefused& m) {
    // One sentence for the job: every rank may try.
    if (!is_rank_on(node, m.rank) || std::exchange(was_spawn_refused_, true)) return;
    note("rank " + std::to_string(m.rank) + " on " + fleet_.name(node) +
         " called MPI_Comm_spawn and got an error, because ddlrun starts no processes for a running "
         "program: start all of them with -np, or start the program with the mpirun of its MPI");
  }
  void on(int node, const message::MpiLoaded& m) {
    if (!is_rank_on(node, m.rank) || were_mpis_different_) return;
    const MpiOnHost mpi{m, fleet_.name(node)};
    if (!first_mpi_) first_mpi_ = mpi;
    const std::string warning = mpi_warning(*first_mpi_, mpi);
    were_mpis_different_ = !warning.empty();
    if (were_mpis_different_) note(warning);
  }
  void on(int node, const message::NamesUnanswered& m) {
    note("warning: " + fleet_.name(node) + " cannot look up the name of " + m.address +
         ", because no name server answers; PyTorch does it for each connection to its store, and may "
         "wait for 10 s each time: add the hosts of the job to /etc/hosts there, or shorten it with -x "
         "\"RES_OPTIONS=timeout:1 attempts:1\"");
  }
  void on(int node, const message::Preemption& m) {
    if (!m.failure.empty()) return note(fleet_.name(node) + ": " + m.failure);
    report_to_job(message::HostLeaving{fleet_.name(node) + ": --preemption-watch: it will be taken away", 0});
  }
  void on(int node, const message::StdinCredit& m) {
    if (stdin_) stdin_->refund(stdin_takers_.take(node, m.bytes));
  }
  void on(int node, const message::StdinClosed&) {
    if (!stdin_) return;
    stdin_->refund(stdin_takers_.close(node));
    if (stdin_takers_.is_empty()) stdin_->stop();
  }
  void on(int node, OutputChunk& chunk) {
    if (!is_rank_on(node, chunk.rank)) return;
    (chunk.stream == OutputStream::kStdout ? traffic_.stdout_bytes : traffic_.stderr_bytes) +=
        std::ssize(chunk.bytes);
    output_->accept(std::move(chunk));
  }
  void on(int node, const message::Finished& m) {
    hosts_.push_back({fleet_.name(node), m.usage});
    report_to_job(m);
    supervisor_.on_finished(node, m.leftovers_ended);
  }
  void on(int node, const message::AgentFailed& m) {
    const std::string sentence = fleet_.name(node) + ": " + m.text;
    if (m.end_signal != 0 && report_to_job(message::HostLeaving{sentence, m.end_signal})) return;
    if (m.end_signal != 0) return supervisor_.on_agent_termination_requested(node, sentence, m.end_signal);
    if (m.lost) tell_ranks(node, m.text);
    supervisor_.on_agent_failed(node, sentence, m.lost);
  }
  void on(int node, message::PmiBarrier& m) {
    if (report_to_job(m)) return;
    pmi_barriers_.on(node, std::move(m));
  }
  void on(int node, const message::ElasticJoin& m) {
    if (is_rank_on(node, m.rank)) report_to_job(m);
  }
  void on(int node, const message::ElasticFinished& m) {
    if (is_rank_on(node, m.rank)) report_to_job(m);
  }
  void on(int node, const message::AskGlooStore& m) {
    if (report_to_job(m)) return;
    fleet_.send(node, message::GlooStoreAnswered{m.id, gloo_store_.apply(m.request)});
  }
  template <class Message>
    requires requires(PmixRelay& relay, Message& message) { relay.on(0, std::move(message)); }
  void on(int node, Message& message) {
    relay_.on(node, std::move(message));
  }

  /// Before the signal that ends them, so that they report the lost node, and not a rank that the signal has ended.
  void tell_ranks(int node, const std::string& why) {
    const auto lost = lost_host(supervisor_.report().ranks, ranks_.rank_nodes, node, why);
    if (lost) fleet_.send_all(*lost);
  }

  /// mpirun only sees that its daemons end, and each kind has an exit code of its own for that.
  void look_for_cancellation() {
    if (supervisor_.report().reason == EndReason::kRankFailed && !scheduler_job_.empty() &&
        scheduler_.is_ending(scheduler_job_, context_.head_environment))
      supervisor_.on_job_cancelled(scheduler_.name() + " has ended job " + scheduler_job_ +
                                   ", as after scancel or at a time limit");
  }

  // ---- what the supervisor decides ----

  void end_ranks(int signal, double grace_seconds) override {
    recording_.ask_for_histories();
    fleet_.send_all(message::End{signal, grace_seconds});
  }
  void forward_signal(int signal) override { fleet_.send_all(message::Signal{signal}); }
  void finish() override {
    // The agents have what the ranks recorded until they end.
    const auto finish = [this] { fleet_.send_all(message::Finish{}); };
    if (context_.elastic_job != nullptr && !spec_.timeline_file.empty()) {
      send_timeline(finish);
    } else if (!recording_.write_timeline(finish)) {
      finish();
    }
  }
  /// Of the processes of this launch, to the job, which has one file for all.
  void send_timeline(std::function<void()> done) {
    timeline_of_launch_.emplace(loop_, kTimelineOfLaunch, true,
                                EventCollector::Actions{[this](const message::AskEvents& question) {
                                                          fleet_.send(ranks_.rank_nodes.at(question.rank),
                                                                      question);
                                                          return true;
                                                        },
                                                        [](CollectedEvents&&) {}, std::move(done)});
    timeline_of_launch_->start(spec_.started_ranks, contract::EventRing::kMaxCapacity);
  }
  void wait_for_root_cause() override { await_cause(kRootCauseDeadline); }
  void wait_for_clients() override { await_cause(kClientsDeadline); }
  void await_cause(Clock::duration time) {
    root_cause_timer_ = loop_.after(time, [this] { supervisor_.on_root_cause_timeout(); });
  }
  void stop_self() override { fleet_.stop_self(); }
  void done() override {
    recording_.give_up();
    for (const std::string& line : binding_report_.take()) note(line);
    timeout_timer_.cancel();
    root_cause_timer_.cancel();
    output_->when_idle([this] { loop_.stop(); });
  }
  void abandon_output() override {
    is_output_awaited_ = false;
    loop_.stop();
  }
  void note(const std::string& sentence) override {
    if (!spec_.quiet) output_->print("ddlrun: " + printable_text(sentence));
  }

  JobContext context_;
  const JobSpec& spec_ = context_.spec;
  const Notices& notices_ = context_.notices;
  EventLoop& loop_ = context_.loop;
  Fleet& fleet_ = context_.fleet;
  Supervisor& supervisor_ = context_.supervisor;
  const Scheduler& scheduler_ = scheduler_here(context_.head_environment);
  const std::string scheduler_job_ = scheduler_job_of_ranks(context_.allocation, context_.head_environment);
  JobPlanner planner_;
  const Supervisor::Job ranks_;
  PmixRelay relay_;
  PmiBarriers pmi_barriers_;
  GlooStore gloo_store_;  ///< nobody asks it unless the agents serve it
  StallInspector stalls_;
  JobRecording recording_;
  std::optional<EventCollector> timeline_of_launch_;
  JobInspector inspector_;
  MetricsExporter exporter_;
  std::unique_ptr<OutputRouter> output_;
  StdinTakers stdin_takers_;
  std::optional<StdinReader> stdin_;         ///< only while ranks may read
  std::map<int, EventLoop::Timer> stopped_;  ///< by rank that was stopped: when the job ends for it
  bool was_spawn_refused_ = false;           ///< the user has been told
  std::optional<MpiOnHost> first_mpi_;
  bool were_mpis_different_ = false;                        ///< the user has been warned
  std::set<std::pair<std::string, std::int64_t>> sharing_;  ///< other ddlruns that the user was warned of
  BindingReport binding_report_;
  EventLoop::Timer timeout_timer_;
  EventLoop::Timer root_cause_timer_;
  Clock::time_point began_ = Clock::now();
  bool is_output_awaited_ = true;
  std::vector<HostUsage> hosts_;
  HeadTraffic traffic_{0, 0, 0, 0};  ///< without that of the links
};

}  // namespace

Result<std::unique_ptr<RunningJob>> RunningJob::launch(const JobContext& job, JobPlanner planner) {
  DDL_ASSIGN(planned, planner.plan());
  auto running = std::make_unique<Job>(job, std::move(planner), planned);
  DDL_TRY(running->begin(std::move(planned)));
  return running;
}

}  // namespace ddl::launcher
