// The benchmarks in which the ranks measure themselves: one for each collective over the message size, and
// "gradients", the training steps of a model.
#include <stdlib.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "bench/benchmarks.h"
#include "bench/blocks.h"
#include "bench/cluster.h"
#include "bench/machine.h"
#include "bench/measured_run.h"
#include "bench/peers.h"
#include "bench/report.h"
#include "bench/scoreboard.h"
#include "bench/settings.h"
#include "bench/workload.h"

namespace ddl::bench {

/// "4 ranks on one host", "4 ranks on 2 hosts at 1 Gbit/s".
std::string job_text(const JobShape& job);

/// Fills in the contenders, figures and comparisons of a report that is complete otherwise: it has one case for each
/// size of the plan, in that order, without contenders. A job of several hosts needs to run on the head of a cluster.
void run_ranks(Report& report, const RankWork& work, const Site& site);

namespace {

constexpr double kRunTimeout = 600;
constexpr std::chrono::seconds kTimeToBeFar{10};

// A folder that all ranks see. The hosts of a cluster share the home folder, which is a tmpfs there.
std::string common_folder(const JobShape& job) {
  if (job.hosts == 1) return std::filesystem::temp_directory_path().native();
  const char* home = std::getenv("HOME");
  return home == nullptr ? "/root" : home;
}

// The times of the calls during which the ranks were at this distance.
std::vector<double> times_at(Distance distance, const TimedCalls& calls) {
  std::vector<double> times;
  for (std::size_t call = 0; call < calls.seconds.size(); ++call) {
    if (calls.distances[call] == distance) times.push_back(calls.seconds[call]);
  }
  return times;
}

// Those that ranks with a CPU each can have; none if that is not measured.
std::vector<Distance> distances_of(const Settings& settings) {
  const int ranks = settings.job.ranks;
  if (settings.job.hosts > 1 || ranks < 2 || ranks > static_cast<int>(settings.cpus.size())) return {};
  if (ranks == 2) return {Distance::kNear, Distance::kFar};
  return {Distance::kNear, Distance::kMixed, Distance::kFar};
}

// Runs the contenders of one benchmark.
class RankRuns {
 public:
  RankRuns(const Settings& settings, const std::vector<SizePlan>& plan)
      : settings_(settings), plan_(plan), distances_(distances_of(settings)) {
    if (job().hosts > 1) hosts_.emplace(job().hosts);
  }

  /// Those for which each size has a case; empty: one for all.
  const std::vector<Distance>& distances() const { return distances_; }

  double cpu_seconds() const { return hosts_ ? hosts_->cpu_seconds() : 0; }

  Status set_rate() const {
    for (const std::string& host : hosts_ ? hosts_->names() : std::vector<std::string>()) {
      Status set = ddl::bench::set_rate(host, job().rate);
      if (!set) return set;
    }
    return {};
  }

  Result<RunTimes> run(const Contender& contender) const {
    // If they do not become so, the report says at which distances there are times.
    if (settings_.is_far && contender.is_bound) wait_until_far(settings_.cpus, Deadline::after(kTimeToBeFar));
    const auto folder = TemporaryFolder::make_in(common_folder(job()), "ddl-bench");
    if (!folder) return fail(folder.error());
    const auto scoreboard = hosts_
                                ? Scoreboard::create_file(folder->path() + "/scoreboard", job().ranks, plan_)
                                : Scoreboard::create(job().ranks, plan_);
    if (!scoreboard) return fail(scoreboard.error());
    Command command = contender.command;
    command.argv.insert(command.argv.end(), {folder->path(), scoreboard->path()});
    const double cpu_before = cpu_seconds();
    auto child = MeasuredRun::start(command);
    if (!child) return fail(std::move(child.error()));
    const auto cost = child->finish(Deadline::after_seconds(kRunTimeout));
    // Also after a failure: the next contender starts on idle hosts.
    const Status idle = hosts_ ? hosts_->wait_until_idle() : Status();
    if (!cost) return fail(cost.error());
    if (!idle) return fail(idle.error());
    RunTimes times{{}, cost->cpu_seconds + cpu_seconds() - cpu_before};
    for (std::size_t i = 0; i < plan_.size(); ++i) {
      TimedCalls calls = scoreboard->timed_calls(i);
      if (distances_.empty()) times.by_case.push_back(calls.seconds);
      // A contender whose ranks run on any CPU has no distance: all its times count for each.
      for (const Distance distance : distances_)
        times.by_case.push_back(contender.is_bound ? times_at(distance, calls) : calls.seconds);
    }
    return times;
  }

 private:
  const JobShape& job() const { return settings_.job; }

  const Settings& settings_;
  const std::vector<SizePlan>& plan_;
  std::vector<Distance> distances_;
  std::optional<ClusterHosts> hosts_;
};

// Replaces each case by one for each distance.
void split_cases(std::vector<Case>& cases, const std::vector<Distance>& distances) {
  if (distances.empty()) return;
  std::vector<Case> split;
  for (const Case& one : cases) {
    for (const Distance distance : distances) {
      Case& part = split.emplace_back(one);
      part.name += fmt::format("-{}", name_of(distance));
      part.label += fmt::format(", {}", name_of(distance));
      part.distance = distance;
    }
  }
  cases = std::move(split);
}

// Removes the cases of distances that did not come up, and says so.
void drop_missing_distances(Report& report, const std::vector<Distance>& distances) {
  for (Case& one : report.cases) {
    const bool is_missing = std::none_of(one.figures.begin(), one.figures.end(), [&](const Figures& figures) {
      return report.contender(figures.contender).is_bound;
    });
    if (one.distance && is_missing) one.figures.clear();
  }
  for (const Distance distance : distances) {
    std::vector<std::string> missing;
    for (const Case& one : report.cases) {
      if (one.distance == distance && one.figures.empty()) missing.push_back(one.label);
    }
    if (missing.empty()) continue;
    report.remarks.push_back("The ranks were never at this distance: " + join(missing, "; ") + ".");
  }
  std::erase_if(report.cases, [](const Case& one) { return one.distance && one.figures.empty(); });
}

// "10gbit" as people write it: "10 Gbit/s".
std::string rate_text(const std::string& rate) {
  const std::size_t digits = std::min(rate.find_first_not_of("0123456789"), rate.size());
  std::string unit = rate.substr(digits);
  if (!unit.empty()) unit[0] = static_cast<char>(unit[0] - 'a' + 'A');
  return rate.substr(0, digits) + " " + unit + "/s";
}

}  // namespace

std::string job_text(const JobShape& job) {
  const std::string ranks = counted(job.ranks, "rank");
  if (job.hosts == 1) return ranks + " on one host";
  return fmt::format("{} on {} hosts{}", ranks, job.hosts,
                     job.rate.empty() ? "" : " at " + rate_text(job.rate));
}

void run_ranks(Report& report, const RankWork& work, const Site& site) {
  const Settings& settings = report.settings;
  report.machine = describe_machine(site.mpirun);
  report.contenders = contenders_of(work, site, settings);
  const RankRuns runs(settings, work.plan);
  split_cases(report.cases, runs.distances());
  std::vector<Contender*> contenders;
  for (Contender& contender : report.contenders) contenders.push_back(&contender);
  std::vector<Case*> cases;
  for (Case& one : report.cases) {
    for (const Contender& contender : report.contenders) one.contenders.push_back(contender.name);
    cases.push_back(&one);
  }
  if (const Status set = runs.set_rate(); !set) {
    for (Contender* contender : contenders) contender->failed = set.error().message();
  }
  const LoadWatch watch([&] { return runs.cpu_seconds(); });
  run_blocks(
      report.benchmark, contenders, settings.blocks,
      [&](const Contender& contender) { return runs.run(contender); }, cases);
  report.other_load = watch.other_load();
  drop_missing_distances(report, runs.distances());
  for (Case& one : report.cases) compare(one, report.contenders, peer_pairings());
}

// The benchmarks of single collectives: "allreduce" and its siblings.
namespace {

constexpr int kBlocks = 10;

// Wanted sizes that round up to the same size are measured once.
RankWork work_of(Collective what, const Settings& settings) {
  std::vector<std::uint64_t> sizes;
  for (const std::uint64_t wanted : settings.job.sizes.empty() ? default_sizes() : settings.job.sizes) {
    const std::uint64_t bytes = whole_bytes(what, wanted, settings.job.ranks);
    if (sizes.empty() || sizes.back() < bytes) sizes.push_back(bytes);
  }
  return {name_of(what), plan_of_sizes(sizes, settings.quick)};
}

Report run_collective(Collective what, const Site& site, const Settings& settings) {
  const RankWork work = work_of(what, settings);
  Report report;
  report.benchmark = name_of(what);
  report.title = fmt::format("{}: {}, {}", name_of(what), describe(what), job_text(settings.job));
  report.method =
      "Time of one call on the slowest rank, each pinned to one CPU; before each call every rank rewrites "
      "its whole buffers, the time of a cache line between the CPUs is measured, and all meet.";
  report.settings = settings;
  for (const SizePlan& size : work.plan) {
    report.cases.push_back(
        {.name = std::to_string(size.bytes), .label = size_text(size.bytes), .bytes = size.bytes});
  }
  run_ranks(report, work, site);
  return report;
}

}  // namespace

std::vector<Benchmark> collective_benchmarks() {
  std::vector<Benchmark> all;
  for (const Collective what : all_collectives()) {
    all.push_back(
        {name_of(what), fmt::format("{}, over the message size", describe(what)), kBlocks,
         [what](const Site& site, const Settings& settings) {
           return contenders_of(work_of(what, settings), site, settings);
         },
         [what](const Site& site, const Settings& settings) { return run_collective(what, site, settings); },
         [](const Settings& settings) { return settings.job.hosts > 1 ? settings.job.hosts : 0; }, true});
  }
  return all;
}

// The benchmark "gradients".
namespace {

constexpr int kStepBlocks = 10;

struct Packing {
  const char* name;
  const char* label;
  std::uint64_t bucket_bytes;
};

// No two gradients fit into a bucket of one element. 25 MiB is what PyTorch's DistributedDataParallel uses.
constexpr Packing kPackings[] = {{"one-by-one", "one by one", sizeof(float)},
                                 {"buckets", "in buckets of 25 MiB", std::uint64_t{25} << 20}};

RankWork work_of(const Settings& settings) {
  RankWork work{name_of(settings.job.model), {}};
  for (const Packing& packing : kPackings)
    work.plan.push_back({packing.bucket_bytes, std::uint64_t{settings.quick ? 2U : 10U}, 1});
  return work;
}

std::string model_text(Model model) {
  const std::vector<std::uint64_t> tensors = tensors_of(model);
  std::uint64_t elements = 0;
  for (const std::uint64_t count : tensors) elements += count;
  return fmt::format("{}, {} gradients of {:.1f} million f32", name_of(model), tensors.size(),
                     static_cast<double>(elements) * 1e-6);
}

Report run_gradients(const Site& site, const Settings& settings) {
  Report report;
  report.benchmark = "gradients";
  report.title = fmt::format("gradients: {}, {}", model_text(settings.job.model), job_text(settings.job));
  report.method =
      "Time in which the slowest rank sums all gradients of a step, last layer first, copies into buckets "
      "and back included.";
  report.settings = settings;
  const std::vector<std::uint64_t> tensors = tensors_backward(settings.job.model);
  for (const Packing& packing : kPackings) {
    const auto calls = static_cast<std::int64_t>(buckets_of(tensors, packing.bucket_bytes).size());
    report.cases.push_back(
        {.name = packing.name, .label = fmt::format("{} ({})", packing.label, counted(calls, "call"))});
  }
  run_ranks(report, work_of(settings), site);
  return report;
}

}  // namespace

Benchmark gradients_benchmark() {
  return {"gradients",
          "a training step's sums: all gradients of a model, one by one and in buckets",
          kStepBlocks,
          [](const Site& site, const Settings& settings) {
            return contenders_of(work_of(settings), site, settings);
          },
          run_gradients,
          [](const Settings& settings) { return settings.job.hosts > 1 ? settings.job.hosts : 0; },
          true};
}

}  // namespace ddl::bench
