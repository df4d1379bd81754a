#include "launcher/head/elastic_job.h"

#include <csignal>
#include <memory>
#include <optional>
#include <random>
#include <utility>
#include <variant>

#include "base/deadline.h"
#include "base/process_tree.h"
#include "base/text.h"
#include "contract/ddlrun.h"
#include "launcher/elastic/generation_planner.h"
#include "launcher/elastic/membership_watch.h"
#include "launcher/head/job_context.h"
#include "launcher/loop/event_loop.h"
#include "launcher/process/end_watch.h"
#include "launcher/process/shell_attributes.h"

namespace ddl::launcher {
namespace {

using Clock = std::chrono::steady_clock;

/// "trace.json" of the first generation, "trace.generation2.json" of the third.
std::string timeline_of(const std::string& file, int generation) {
  if (file.empty() || generation == 0) return file;
  const auto slash = file.rfind('/');
  const auto dot = std::min(file.find('.', slash + 1), file.size());
  return file.substr(0, dot) + ".generation" + std::to_string(generation) + file.substr(dot);
}

/// Signals that end the job, and that come while no loop looks for them, wait for the next loop.
class HeldSignals {
 public:
  HeldSignals() {
    ::sigemptyset(&set_);
    for (const int signal : signals_) ::sigaddset(&set_, signal);
    ::pthread_sigmask(SIG_BLOCK, &set_, &before_);
  }
  ~HeldSignals() {
    // The job has ended already.
    constexpr timespec kAtOnce{};
    while (::sigtimedwait(&set_, nullptr, &kAtOnce) > 0) {
    }
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;

  const std::vector<int>& signals() const { return signals_; }

 private:
  const std::vector<int> signals_ = ending_signals();
  sigset_t set_{};
  sigset_t before_{};
};

class ElasticJob {
 public:
  ElasticJob(const JobSpec& spec, const Allocation& allocation, const Environment& environment,
             const Notices& notices, const std::function<void(const JobReport&)>& on_end_of_generation)
      : spec_(spec),
        allocation_(allocation),
        environment_(environment),
        notices_(notices),
        on_end_of_generation_(on_end_of_generation),
        planner_(spec_, spec.elastic.discovery.empty() ? allocation.nodes : std::vector<AllocatedNode>(),
                 [this] { return std::uniform_real_distribution<>()(random_); }) {}

  Result<JobReport> run() {
    if (!spec_.elastic.discovery.empty()) DDL_TRY(wait_for_discovery());
    while (!result_) {
      const auto decision = planner_.next(Clock::now());
      if (const auto* const start = std::get_if<GenerationPlanner::Start>(&decision)) {
        DDL_TRY(run_generation(start->generation));
      } else if (const auto* const wait = std::get_if<GenerationPlanner::Wait>(&decision)) {
        show_end_of_generation();
        wait_for_hosts(*wait);
      } else {
        end(std::get<GenerationPlanner::End>(decision).why);
      }
    }
    result_->generations = std::move(generations_);
    return *std::move(result_);
  }

 private:
  // ---- a generation ----

  Status run_generation(const Generation& generation) {
    show_end_of_generation();
    announce(generation);
    JobSpec spec = spec_;
    spec.num_ranks = generation.num_ranks;
    spec.generation = generation.number;
    spec.timeline_file = timeline_of(spec_.timeline_file, generation.number.generation);
    if (spec_.timeout_seconds > 0) spec.timeout_seconds = std::max(0.001, remaining_seconds());
    Allocation allocation = allocation_;
    allocation.nodes = generation.hosts;

    GenerationReport begun{generation.number, generation.num_ranks, {}, elapsed_seconds(), 0, {}};
    for (const AllocatedNode& host : generation.hosts) begun.hosts.push_back(host.name);
    auto report =
        run_job(spec, allocation, environment_, notices_,
                [this](EventLoop& loop, std::function<bool(const std::string&)> on_change) {
                  return std::make_shared<MembershipWatch>(
                      loop, planner_, spec_, MembershipWatch::Handlers{std::move(on_change), notices_.note});
                });
    if (!report) return fail(std::move(report.error()));
    begun.run_seconds = report->run_seconds;
    begun.end = *report;
    generations_.push_back(std::move(begun));
    last_ = *std::move(report);
    planner_.on_ended(*last_, Clock::now());
    return {};
  }

  /// The report of the last generation, once it is known that the job goes on.
  void show_end_of_generation() {
    if (!last_ || std::exchange(shown_, generations_.size()) == generations_.size()) return;
    if (last_->reason == EndReason::kHostsChanged) {
      notices_.note(last_->message + ", so the ranks have been ended");
    } else {
      on_end_of_generation_(*last_);
    }
  }

  void announce(const Generation& generation) {
    const GenerationNumber& number = generation.number;
    std::vector<std::string> names;
    for (const AllocatedNode& host : generation.hosts) names.push_back(host.name);
    const std::string ranks = counted(generation.num_ranks, "rank") + " on " + join(names, ", ");
    if (number.generation == 0) return notices_.detail("generation 0: " + ranks);
    std::string limit;
    if (last_ && number.restarts > announced_restarts_)
      limit = " (restart " + std::to_string(number.restarts) + " of " +
              std::to_string(spec_.elastic.max_restarts) + ")";
    announced_restarts_ = number.restarts;
    notices_.note("generation " + std::to_string(number.generation) + ": starting " + ranks + limit);
  }

  // ---- between generations ----

  /// Runs a loop until it is stopped, or the job has a result.
  template <class Begin>
  void wait(Begin begin) {
    EventLoop loop;
    loop.watch_signals(held_.signals(), [&](int signal) {
      result_ = JobReport{end_by_signal(signal, "no ranks were running")};
      loop.stop();
    });
    EventLoop::Timer timeout;
    if (spec_.timeout_seconds > 0)
      timeout = loop.after(clock_duration(std::max(0.0, remaining_seconds())), [&] {
        result_ = JobReport{end_with(EndReason::kTimeout, contract::kTimeout, "no ranks were running")};
        loop.stop();
      });
    std::optional<EndWatch> caller;
    if (spec_.end_with_pid != 0)
      caller.emplace(loop, spec_.end_with_pid, [&] {
        result_ = JobReport{end_by_signal(SIGTERM, caller_ended_text(spec_.end_with_pid))};
        loop.stop();
      });
    const auto guest = begin(loop);
    loop.run();
  }

  Status wait_for_discovery() {
    Status status;
    wait([&](EventLoop& loop) {
      return std::make_unique<HostDiscovery>(loop, spec_,
                                             HostDiscovery::Handlers{[&](const DiscoveredHosts& found) {
                                                                       planner_.on_hosts(found.hosts,
                                                                                         Clock::now());
                                                                       loop.stop();
                                                                     },
                                                                     [&](const Error& error) {
                                                                       status = fail(error);
                                                                       loop.stop();
                                                                     }});
    });
    return status;
  }

  void wait_for_hosts(const GenerationPlanner::Wait& until) {
    if (std::exchange(waited_for_, until.why) != until.why) notices_.note(until.why + "; waiting for hosts");
    wait([&](EventLoop& loop) {
      struct Guest {
        EventLoop::Timer timer;
        std::optional<HostDiscovery> discovery;
      };
      auto guest = std::make_unique<Guest>();
      guest->timer =
          loop.after(std::max(until.until - Clock::now(), Clock::duration()), [&] { loop.stop(); });
      if (!spec_.elastic.discovery.empty())
        guest->discovery.emplace(loop, spec_,
                                 HostDiscovery::Handlers{[&](const DiscoveredHosts& found) {
                                                           planner_.on_hosts(found.hosts, Clock::now());
                                                           if (planner_.can_start(Clock::now())) loop.stop();
                                                         },
                                                         [](const Error&) {}});
      return guest;
    });
  }

  /// why: as of GenerationPlanner::End.
  void end(const std::string& why) {
    if (last_) {
      if (!why.empty()) notices_.note("the job ends: " + why);
      result_ = *std::move(last_);
    } else {
      result_ = JobReport{end_with(EndReason::kStartFailed, contract::kStartFailure, why)};
    }
  }

  double elapsed_seconds() const { return std::chrono::duration<double>(Clock::now() - began_).count(); }
  double remaining_seconds() const { return spec_.timeout_seconds - elapsed_seconds(); }

  const JobSpec& spec_;
  const Allocation& allocation_;
  const Environment& environment_;
  const Notices& notices_;
  const std::function<void(const JobReport&)>& on_end_of_generation_;
  HeldSignals held_;
  OrphanReaper reaper_;  ///< of the ssh of a host that was asked, and has not answered
  std::minstd_rand random_{std::random_device()()};
  GenerationPlanner planner_;
  const Clock::time_point began_ = Clock::now();
  std::vector<GenerationReport> generations_;
  std::optional<JobReport> last_;  ///< that of the generation that ended last
  std::size_t shown_ = 0;          ///< generations whose reports the user has seen
  std::string waited_for_;         ///< what the user was told last of a wait
  int announced_restarts_ = 0;
  std::optional<JobReport> result_;  ///< of the job
};

}  // namespace

Result<JobReport> run_elastic_job(const JobSpec& spec, const Allocation& allocation,
                                  const Environment& head_environment, const Notices& notices,
                                  const std::function<void(const JobReport&)>& on_end_of_generation) {
  return ElasticJob(spec, allocation, head_environment, notices, on_end_of_generation).run();
}

}  // namespace ddl::launcher
