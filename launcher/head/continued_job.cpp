#include "launcher/head/continued_job.h"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "base/deadline.h"
#include "base/process_tree.h"
#include "base/text.h"
#include "contract/ddlrun.h"
#include "launcher/elastic/gloo_generations.h"
#include "launcher/elastic/membership.h"
#include "launcher/head/continued_hosts.h"
#include "launcher/head/generation_inspector.h"
#include "launcher/head/generation_reports.h"
#include "launcher/head/generation_timeline.h"
#include "launcher/head/job_context.h"
#include "launcher/head/job_planner.h"
#include "launcher/head/member_launches.h"
#include "launcher/head/pmix_relay.h"
#include "launcher/loop/event_loop.h"
#include "launcher/process/child.h"
#include "launcher/process/end_watch.h"
#include "launcher/process/shell_attributes.h"
#include "net/job_key.h"
#include "net/pmi_line.h"

namespace ddl::launcher {
namespace {

using Clock = std::chrono::steady_clock;

constexpr char kAskedByTermination[] = "SIGTERM has asked the job to end";

// Slurm kills 30 s after SIGTERM, if its KillWait is the usual one.
constexpr std::chrono::seconds kDrainTime{25};

// An agent whose launch has lost its head ends its ranks, and removes its directory.
constexpr std::chrono::seconds kCleanUpTime{6};

class ContinuedJob {
 public:
  ContinuedJob(const JobSpec& spec, const Allocation& allocation, const Environment& environment,
               const Notices& notices, MemberLaunch::Job job)
      : spec_(spec),
        allocation_(allocation),
        environment_(environment),
        notices_(notices),
        job_(std::move(job)),
        cooldown_{spec.elastic.cooldown_min_seconds, spec.elastic.cooldown_max_seconds,
                  [this] { return std::uniform_real_distribution<>()(random_); }} {}

  Result<JobReport> run() {
    std::signal(SIGPIPE, SIG_IGN);  // a launch may end while it is written to
    std::vector<int> signals = ending_signals();
    signals.insert(signals.end(), {SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT, SIGCHLD});
    loop_.watch_signals(signals, [this](int signal) { on_signal(signal); });
    if (spec_.timeout_seconds > 0)
      timeout_ = loop_.after(clock_duration(spec_.timeout_seconds),
                             [this] { end(end_with(EndReason::kTimeout, contract::kTimeout)); });
    std::optional<EndWatch> caller;
    if (spec_.end_with_pid != 0)
      caller.emplace(loop_, spec_.end_with_pid,
                     [this] { end(end_by_signal(SIGTERM, caller_ended_text(spec_.end_with_pid))); });
    hosts_.open(loop_);
    if (const auto status = inspector_.listen(); !status)
      notices_.detail("ddlrun --inspect cannot ask this job here: " + status.error().message());
    DDL_TRY(exporter_.open(job_.id));
    exporter_.begin();
    if (!spec_.timeline_file.empty()) {
      auto timeline = GenerationTimeline::create(spec_.timeline_file, spec_.timeline_bytes);
      if (!timeline)
        return refuse(
            timeline.error().during("the timeline (--timeline-filename, or DDL_TIMELINE)").message());
      timeline_.emplace(*std::move(timeline));
    }
    loop_.run();
    inspector_.close();
    exporter_.end([this] { return inspector_.concluded(generations_.usages()); });
    (void)reaper_.wait(Deadline::after(kCleanUpTime));
    if (error_) return fail(*std::move(error_));
    JobReport report{*std::move(result_)};
    if (timeline_) timeline_->write([this](int member) { return fate_of(member); }, notices_.note, report);
    if (report.reason == EndReason::kSuccess && output_lost_) static_cast<JobEnd&>(report) = *output_lost_;
    report.hint = hint_;
    report.ranks = membership_.outcomes();
    report.generations = generations_.take();
    report.hosts = generations_.usages();
    report.stalls = inspector_.stalls();
    report.run_seconds = generations_.seconds();
    return report;
  }

 private:
  using Launch = MemberLaunches::Launch;

  std::pair<std::int64_t, std::string> fate_of(int member) const {
    const RankOutcome& outcome = membership_.member(member).outcome;
    const bool has_ended =
        outcome.kind == RankOutcome::Kind::kExited || outcome.kind == RankOutcome::Kind::kSignalled;
    return {outcome.pid, has_ended ? "the process " + how_it_ended(outcome) : ""};
  }

  // ---- what launches report ----

  void on(int id, const message::RankStarted& m) {
    if (const auto member = launches_.member_of(id, m.rank)) membership_.on_started(*member, m.pid);
  }
  void on(int id, const message::RankEnded& m) {
    const auto member = launches_.member_of(id, m.outcome.rank);
    if (!member) return;
    membership_.on_ended(*member, m.outcome, Clock::now());
    on_member_ended(*member);
    if (spec_.elastic.unit == ElasticUnit::kHost && !result_ && !membership_.is_draining() &&
        !membership_.is_leaving(*member) && is_failure(m.outcome))
      hosts_.leave(membership_.member(*member).host);
  }
  void on(int id, const message::AskGlooStore& m) {
    const GlooGenerations::Reply reply = gloo_.ask(id, m.id, m.request);
    if (reply.answer) launches_.send(id, message::GlooStoreAnswered{m.id, *reply.answer});
    if (reply.joins) membership_.on_joined(*reply.joins, contract::JoinReason::kLost, 0, Clock::now());
    if (gloo_.have_met()) membership_.on_met();
  }
  void on(int id, const message::ElasticJoin& m) {
    if (spec_.serves_gloo)
      return end(end_with(EndReason::kStartFailed, contract::kStartFailure,
                          "a rank joins by libddl, and --gloo is for programs of Horovod; omit --gloo"));
    if (const auto member = launches_.member_of(id, m.rank))
      membership_.on_joined(*member, static_cast<contract::JoinReason>(m.reason), m.commits, Clock::now());
  }
  void on(int id, const message::ElasticFinished& m) {
    if (const auto member = launches_.member_of(id, m.rank)) membership_.on_finished(*member);
  }
  void on(int id, const message::PmiBarrier& m) {
    if (barriers_) barriers_->on(id, message::PmiBarrier(m));
  }
  void on(int id, const message::AbortRequested& m) {
    // At once: to the others, and to the membership, the ends that follow would look like losses.
    if (const auto member = launches_.member_of(id, m.rank))
      end(end_by_abort(std::max(0, membership_.member(*member).outcome.rank), m.exit_code, m.text));
  }
  void on(int id, const message::Events& m) {
    if (timeline_) timeline_->on_events(id, m);
  }
  template <class Message>  // Stalled, Activity, ForwardedRequest
    requires requires(GenerationInspector& inspector, const Message& message) { inspector.on(0, message); }
  void on(int id, const Message& message) {
    inspector_.on(id, message);
  }
  void on(int id, const message::HostLeaving& m) {
    if (result_ || membership_.is_draining()) return;
    Launch& launch = launches_.at(id);
    hosts_.pool().on_leaving(launch.host, Clock::now());
    for (const auto& [slot, member] : launch.members) membership_.set_leaving(member);
    if (!membership_.has_staying()) {
      is_termination_announced_ = m.signal == SIGTERM;
      const std::string asked = m.signal == SIGTERM ? kAskedByTermination : m.message + ", the last host";
      if (!drain(asked, true)) end(end_by_signal(SIGTERM, m.message));
      return;
    }
    notices_.note(m.message + "; " + hosts_.when_leaving());
    hosts_.end_leaving(launch);
  }
  void on(int id, const message::Finished& m) { generations_.add_usage(launches_.at(id).host, m.usage); }
  void on(int id, const message::LaunchEnded& m) {
    Launch& launch = launches_.at(id);
    launch.phase = Launch::Phase::kConcluded;
    if (m.is_host_lost) hosts_.pool().on_failed(launch.host, Clock::now());
    JobEnd how = end_with(static_cast<EndReason>(m.reason), m.exit_code, m.message, m.signal);
    if (how.reason == EndReason::kOutputLost) output_lost_ = how;
    if (!ends_job(how, m)) return lose_members(launch, m.message);
    hint_ = m.hint;
    if (const auto member = launches_.member_of(id, m.first_failure))
      how.first_failure = std::max(0, membership_.member(*member).outcome.rank);
    end(std::move(how));
  }

  /// Nobody reads the output, or nothing can be started at all.
  bool ends_job(const JobEnd& how, const message::LaunchEnded& m) const {
    switch (how.reason) {
      case EndReason::kSignal: return how.signal == SIGPIPE;
      case EndReason::kStartFailed:
        return !membership_.has_formed() && !m.is_host_lost && m.first_failure < 0;
      default: return false;
    }
  }

  void on_gone(int id) {
    Launch& launch = launches_.at(id);
    if (launch.phase != Launch::Phase::kConcluded) {
      hosts_.pool().on_failed(launch.host, Clock::now());
      lose_members(launch, launch.host + ": the process of ddlrun that had started its ranks has ended");
    }
    inspector_.on_gone(id);
    launches_.erase(id);
    update();
  }

  void lose_members(const Launch& launch, const std::string& why) {
    bool is_noted = false;
    for (const auto& [slot, member] : launch.members) {
      if (membership_.member(member).phase == Member::Phase::kEnded) continue;
      const bool was_planned = membership_.is_leaving(member);
      membership_.on_lost(member, why, Clock::now());
      if (!why.empty() && !was_planned && !result_ && !std::exchange(is_noted, true)) notes_.push_back(why);
    }
    // At the start a host may be missed so much that its failure is the job's.
    if (membership_.generation() >= 0) show_notes();
  }

  void show_notes() {
    for (const std::string& note : std::exchange(notes_, {})) notices_.note(note);
  }

  void on_member_ended(int member) {
    const Member& one = membership_.member(member);
    if (result_ || membership_.is_leaving(member)) return;
    if (membership_.lost_rank() == member)
      return notices_.note(rank_label(one.outcome) + " " + how_it_ended(one.outcome));
    if (one.outcome.rank >= 0 && one.outcome.kind == RankOutcome::Kind::kExited &&
        one.outcome.exit_code == 0 && !membership_.is_finishing() && !membership_.is_draining())
      return notices_.note(rank_label(one.outcome) +
                           " exited with 0 before the work was done; the others go on");
    if (one.outcome.rank < 0 && membership_.generation() >= 0)
      notices_.note(fmt::format("a process on {} (pid {}) that was to join {}; the job goes on without it",
                                one.host, one.outcome.pid, how_it_ended(one.outcome)));
  }

  // ---- the generations ----

  void update() {
    if (result_) return stop_if_gone();
    hosts_.start_launches();
    const auto now = Clock::now();
    const auto decision = membership_.next(now, hosts_.next_chance(now));
    if (const auto* const plan = std::get_if<Membership::Plan>(&decision)) {
      begin(*plan);
      return update();
    }
    if (const auto* const over = std::get_if<Membership::End>(&decision)) {
      if (!over->why.empty()) notices_.note("the job ends: " + over->why);
      return end(over->how);
    }
    tell_lost();
    look_at_hung(now);
    const auto& wait = std::get<Membership::Wait>(decision);
    if (!wait.why.empty() && std::exchange(waited_for_, wait.why) != wait.why)
      notices_.note(wait.why + "; waiting for others");
    show_change(now);
    set_timer(wait.until, now);
  }

  void begin(const Membership::Plan& plan) {
    std::map<int, message::ElasticPlan> parts;  // by launch
    std::vector<std::vector<int>> node_ranks;
    std::vector<std::string> hosts;
    for (int rank = 0; rank < std::ssize(plan.members); ++rank) {
      const Member& one = membership_.member(plan.members[rank]);
      if (hosts.empty() || hosts.back() != one.host) {
        hosts.push_back(one.host);
        node_ranks.emplace_back();
      }
      node_ranks.back().push_back(rank);
      message::ElasticPlan& part = parts[launches_.launch_of(plan.members[rank])];
      part.members.push_back(one.slot);
      part.ranks.push_back(rank);
    }
    const std::string mapping = net::process_mapping(node_ranks);
    std::vector<int> rank_launches;
    std::vector<GenerationInspector::Place> places;
    for (const int member : plan.members) {
      rank_launches.push_back(launches_.launch_of(member));
      places.push_back(
          {launches_.launch_of(member), membership_.member(member).slot, membership_.member(member).host});
    }
    inspector_.begin(plan.generation, std::move(places));
    begin_gloo(plan);
    if (timeline_) timeline_->begin(plan.members);
    barriers_.emplace(rank_launches, [this](int id, const message::HeadToAgent& m) {
      if (const auto* const done = std::get_if<message::PmiBarrierDone>(&m)) launches_.send(id, *done);
    });
    for (auto& [id, part] : parts) {
      part.generation = plan.generation;
      part.size = static_cast<int>(std::ssize(plan.members));
      part.hosts = mapping;
      launches_.send(id, part);
    }
    for (const int member : plan.removed) {
      if (Launch* const launch = launches_.find(launches_.launch_of(member))) hosts_.end_leaving(*launch);
    }
    is_lost_told_ = false;
    stalled_.clear();
    show_notes();
    const std::string sentence = generations_.begin(plan, hosts, membership_);
    plan.generation == 0 ? notices_.detail(sentence) : notices_.note(sentence);
  }

  void begin_gloo(const Membership::Plan& plan) {
    std::vector<GlooGenerations::Process> ranks;
    for (const int member : plan.members)
      ranks.push_back({member, launches_.launch_of(member), membership_.member(member).host});
    for (const GlooGenerations::LateAnswer& late : gloo_.begin(ranks))
      launches_.send(late.launch, message::GlooStoreAnswered{late.id, late.answer});
  }

  /// The ranks wait for one that has ended, perhaps on another host: they learn that from here at the latest.
  void tell_lost() {
    const auto lost = membership_.lost_rank();
    if (!lost || std::exchange(is_lost_told_, true)) return;
    const RankOutcome& outcome = membership_.member(*lost).outcome;
    const message::HostLost message{outcome.host, outcome.rank, outcome.pid,
                                    "ddlrun says that it " + how_it_ended(outcome)};
    launches_.send_all(message);
  }

  void look_at_hung(Clock::time_point now) {
    std::vector<int> ranks;
    for (const int member : membership_.hung(now)) {
      if (!killed_.contains(member)) ranks.push_back(membership_.member(member).outcome.rank);
    }
    inspector_.look_at(ranks);
  }

  /// where: it hangs, as a sentence; "": that is not known.
  void kill_hung(int rank, const std::string& where) {
    const int member = membership_.ranks().at(rank);
    const auto hung = membership_.hung(Clock::now());
    const bool is_late = std::find(hung.begin(), hung.end(), member) != hung.end();
    // It may have come meanwhile.
    if ((!is_late && !stalled_.contains(member)) || !killed_.insert(member).second) return;
    notices_.note(rank_label(membership_.member(member).outcome) +
                  (is_late ? fmt::format(" has not joined again within {} s, and is killed",
                                         spec_.elastic.ready_timeout_seconds)
                           : " is killed") +
                  (where.empty() ? "" : ": " + where));
    hosts_.end_member(member);
  }

  /// The ranks have waited for the longest time that is allowed: the others go on without those that do not come.
  void on_stall(const Stall& stall) {
    if (membership_.lost_rank()) return;  // they will all notice that, and join again
    const std::vector<int>& ranks = membership_.ranks();
    if (stall.missing.empty() || stall.missing.size() >= ranks.size())
      return end(end_with(EndReason::kStalled, contract::kTimeout, stall.sentence));
    for (const int rank : stall.missing) stalled_.insert(ranks.at(rank));
    notices_.note(stall.sentence);
    inspector_.look_at(stall.missing);
  }

  void show_change(Clock::time_point now) {
    const contract::JobChange change = membership_.pending_change(now);
    if (std::exchange(shown_change_, change) == change) return;
    launches_.send_all(message::ElasticChange{static_cast<std::uint32_t>(change)});
  }

  /// All times are after now.
  void set_timer(std::optional<Membership::Time> until, Clock::time_point now) {
    for (const auto& other : {membership_.next_rest_end(now), hosts_.pool().next_return(now)}) {
      if (other && (!until || *other < *until)) until = other;
    }
    timer_.cancel();
    if (until) timer_ = loop_.after(*until - now, [this] { update(); });
  }

  // ---- the end ----

  void on_signal(int signal) {
    if (signal == SIGCHLD) return launches_.look_for_stopped();
    // All agents have got it: a resource manager sends it to each process of a job, and that is one request.
    if (signal == SIGTERM && std::exchange(is_termination_announced_, false)) return;
    if (signal == SIGUSR1 && drain("SIGUSR1 has asked the job to end", false)) return;
    if (signal == SIGTERM && drain(kAskedByTermination, true)) return;
    switch (signal) {
      case SIGUSR1:
      case SIGUSR2:
      case SIGCONT: return launches_.signal_all(signal);
      case SIGTSTP:
        launches_.signal_all(signal);
        ::kill(::getpid(), SIGSTOP);
        return;
      default: break;
    }
    launches_.signal_all(signal);  // the second one kills
    for (auto& [id, launch] : launches_) launch.phase = std::max(launch.phase, Launch::Phase::kEnding);
    end(end_by_signal(signal, membership_.generation() < 0 ? "no rank had joined" : ""));
  }

  /// If the job has a place for its state: asks its ranks to save it, and to end. asked: by whom, as a sentence.
  /// is_urgent: the machine is taken away soon, or SIGTERM is the first of two signals, of which the second kills.
  bool drain(const std::string& asked, bool is_urgent) {
    if (spec_.elastic.state_directory.empty() || result_) return false;
    if (membership_.is_draining()) return !is_urgent;
    if (membership_.generation() < 0) {
      end(end_with(EndReason::kDrained, contract::kDrained,
                   asked + " before its ranks had joined, and they have changed nothing"));
      return true;
    }
    membership_.drain(fmt::format("{}, and its state is in {}", asked, spec_.elastic.state_directory));
    notices_.note(asked + ": the ranks save their state at the next commit");
    if (is_urgent)
      timeout_ = loop_.after(kDrainTime, [this] {
        end(end_by_signal(SIGTERM, fmt::format("the ranks did not commit within {} s", kDrainTime.count())));
      });
    for (auto& [id, launch] : launches_) hosts_.end_leaving(launch);
    update();
    return true;
  }

  void end(JobEnd how) {
    if (result_) return;
    result_ = std::move(how);
    generations_.end(*result_);
    hosts_.close();
    timer_.cancel();
    timeout_.cancel();
    for (auto& [id, launch] : launches_) hosts_.end_processes(launch);
    stop_if_gone();
  }

  void stop_if_gone() {
    if (launches_.is_empty()) loop_.stop();
  }

  const JobSpec& spec_;
  const Allocation& allocation_;
  const Environment& environment_;
  const Notices& notices_;
  MemberLaunch::Job job_;
  EventLoop loop_;
  OrphanReaper reaper_;
  std::minstd_rand random_{std::random_device()()};
  Cooldown cooldown_;
  Membership membership_{spec_, cooldown_, Clock::now()};
  MemberLaunches launches_{loop_,
                           spec_,
                           allocation_,
                           environment_,
                           notices_,
                           job_,
                           {[this](int id, const message::MemberReport& report) {
                              std::visit([&](const auto& one) { on(id, one); }, report);
                              update();
                            },
                            [this](int id) { on_gone(id); }, [this] { return exporter_.pause(); }}};
  ContinuedHosts hosts_{spec_,
                        allocation_,
                        notices_,
                        cooldown_,
                        membership_,
                        launches_,
                        {[this] { update(); },
                         [this](const Error& error) {
                           error_ = error;
                           loop_.stop();
                         },
                         [this](int id, int slot, const std::string& host) {
                           if (timeline_) timeline_->add(id, slot, host);
                         }}};
  std::optional<PmiBarriers> barriers_;  ///< of the generation
  GenerationInspector inspector_{
      loop_,
      spec_,
      job_.id,
      {[this](int id, const message::MemberOrder& order) { launches_.send(id, order); },
       [this] { return membership_.outcomes(); },
       [this](JobDescription& job) {
         job.failures = generations_.failures();
         job.scheduler_job = scheduler_job_of_ranks(allocation_, environment_);
       },
       [this](const std::string& text) {
         if (!membership_.lost_rank()) notices_.note(text);
       },
       [this](const Stall& stall) { on_stall(stall); },
       [this](int rank, const std::string& where) { kill_hung(rank, where); }}};
  MetricsExporter exporter_{loop_, notices_.metrics,
                            [this](MetricsExport::OnSample tell) { inspector_.ask(std::move(tell)); }};
  GlooGenerations gloo_;  ///< nobody asks it unless JobSpec::serves_gloo
  std::optional<GenerationTimeline> timeline_;
  bool is_lost_told_ = false;
  bool is_termination_announced_ = false;
  contract::JobChange shown_change_ = contract::JobChange::kNone;
  std::set<int> stalled_;  ///< members that keep the others waiting for too long
  std::set<int> killed_;
  std::vector<std::string> notes_;  ///< until it is known that the job goes on
  std::string waited_for_;
  EventLoop::Timer timer_;
  EventLoop::Timer timeout_;
  GenerationReports generations_;
  std::optional<Error> error_;
  std::optional<JobEnd> result_;
  std::optional<JobEnd> output_lost_;  ///< of a launch
  std::string hint_;                   ///< JobReport::hint
};

}  // namespace

Result<JobReport> run_continued_job(const JobSpec& spec, const Allocation& allocation,
                                    const Environment& head_environment, const Notices& notices) {
  DDL_TRY(check_open_files_limit());
  DDL_TRY(check_proc());
  DDL_ASSIGN(id, make_job_id());
  DDL_ASSIGN(key, net::JobKey::random());
  return ContinuedJob(spec, allocation, head_environment, notices, {std::move(id), std::move(key)}).run();
}

}  // namespace ddl::launcher
