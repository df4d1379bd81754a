// The benchmarks of training steps: "gradients", all gradients of a model in several ways, and "overlap", the same
// while the program computes.
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/text.h"
#include "bench/benchmarks.h"
#include "bench/peers.h"
#include "bench/rank_runs.h"
#include "bench/report.h"
#include "bench/settings.h"
#include "bench/workload.h"

namespace ddl::bench {
namespace {

constexpr int kStepBlocks = 10;
constexpr const char* kNamed = "ddl-named";

struct Packing {
  const char* name;
  const char* label;
  std::uint64_t bucket_bytes;
};

// No two gradients fit into a bucket of one element. 25 MiB is what PyTorch's DistributedDataParallel uses.
constexpr std::uint64_t kTorchBucket = std::uint64_t{25} << 20;
constexpr Packing kWaysToReduce[] = {{"one-by-one", "one by one", sizeof(float)},
                                     {"buckets", "in buckets of 25 MiB", kTorchBucket},
                                     {"in-one-buffer", "in one buffer, no copies", kInOneBuffer}};
constexpr Packing kWaysToOverlap[] = {{"communication", "communication only", kTorchBucket},
                                      {"while-computing", "while computing as long", kWhileComputing}};

template <std::size_t kSize>
RankWork work_of(const Packing (&packings)[kSize], const Settings& settings) {
  RankWork work{name_of(settings.job.model), {}};
  for (const Packing& packing : packings)
    work.plan.push_back({packing.bucket_bytes, std::uint64_t{settings.quick ? 2U : 10U}, 1});
  return work;
}

RankWork reducing_work(const Settings& settings) { return work_of(kWaysToReduce, settings); }

RankWork overlapping_work(const Settings& settings) {
  RankWork work = work_of(kWaysToOverlap, settings);
  work.needs_overlap = true;
  return work;
}

std::string model_text(Model model) {
  const std::vector<std::uint64_t> tensors = tensors_of(model);
  std::uint64_t elements = 0;
  for (const std::uint64_t count : tensors) elements += count;
  return fmt::format("{}, {} gradients of {:.1f} million f32", name_of(model), tensors.size(),
                     static_cast<double>(elements) * 1e-6);
}

Report empty_report(const char* name, const Settings& settings) {
  Report report;
  report.benchmark = name;
  report.title = fmt::format("{}: {}, {}", name, model_text(settings.job.model), job_text(settings.job));
  report.settings = settings;
  return report;
}

// The figures of named tensors in the cases whose name begins so, with their case.
std::vector<std::pair<const Case*, const Figures*>> named_figures(const Report& report, const char* begin) {
  std::vector<std::pair<const Case*, const Figures*>> found;
  for (const Case& one : report.cases) {
    const Figures* figures = one.figures_of(kNamed);
    if (figures != nullptr && one.name.starts_with(begin)) found.emplace_back(&one, figures);
  }
  return found;
}

std::string at_distance(const Case& one) {
  return one.distance ? fmt::format("{}: ", name_of(*one.distance)) : std::string();
}

// A step of named tensors against the fastest peer, whatever the way in which the peer does its step.
Aim aim_against_best(const Report& report, const Case& one, const Figures& named) {
  Aim aim{at_distance(one) + "a step of named tensors is not slower than any peer's, in any way",
          "no peer ran", std::nullopt};
  double largest = 0;
  for (const Case& other : report.cases) {
    if (other.distance != one.distance) continue;
    for (const Figures& peer : other.figures) {
      const Contender& contender = report.contender(peer.contender);
      const auto ratio = ratio_of(named, peer);
      if (contender.is_ours || contender.is_limit() || !ratio || ratio->ratio <= largest) continue;
      largest = ratio->ratio;
      aim.found = fmt::format("{:.2f} times as fast as {}, {}", 1 / largest, contender.label, other.label);
      aim.met = largest <= 1;
    }
  }
  return aim;
}

// Nothing is said of peers that the user has not named.
void add_aim(Report& report, Aim aim) {
  if (aim.met || report.settings.job.contenders.empty()) report.aims.push_back(std::move(aim));
}

// What a step of named tensors is compared with.
struct Rival {
  std::string text;
  const char* way;  ///< a Packing's name: in which it reduces
  std::vector<const char*> contenders;
  double times;  ///< as fast is the step to be
};

const Figures* figures_of(const Report& report, const Case& at, const char* way, const char* contender) {
  for (const Case& one : report.cases)
    if (one.name.starts_with(way) && one.distance == at.distance) return one.figures_of(contender);
  return nullptr;
}

Aim aim_against(const Report& report, const Case& one, const Figures& named, const Rival& rival) {
  Aim aim{at_distance(one) +
              fmt::format("a step of named tensors is {:g} times as fast as {}", rival.times, rival.text),
          "it did not run", std::nullopt};
  double largest = 0;
  for (const char* const contender : rival.contenders) {
    const Figures* const peer = figures_of(report, one, rival.way, contender);
    const auto ratio = peer == nullptr ? std::nullopt : ratio_of(named, *peer);
    if (!ratio || ratio->ratio <= largest) continue;
    largest = ratio->ratio;
    aim.found = fmt::format("{:.2f} times", 1 / largest);
    aim.met = largest * rival.times <= 1;
  }
  return aim;
}

// Horovod 0.28 cannot be measured here: this is what it took by its own record, on another machine.
Aim aim_against_horovod(const Case& one, const Figures& named) {
  constexpr double kRecorded = 0.108, kTimes = 6;
  const double times = kRecorded / named.p50();
  return {at_distance(one) + "a step of named tensors is 6 times as fast as Horovod's recorded 108 ms",
          fmt::format("{:.2f} times", times), times >= kTimes};
}

Aim aim_with_timeline(const Case& one, const Figures& named, const Figures& recorded) {
  constexpr double kLonger = 1.01;
  Aim aim{at_distance(one) + "recording a timeline makes a step of named tensors at most 1% longer",
          "not measured", std::nullopt};
  if (const auto ratio = ratio_of(recorded, named)) {
    aim.found = fmt::format("{:.3f} times ({:.3f} to {:.3f})", ratio->ratio, ratio->low, ratio->high);
    aim.met = ratio->ratio <= kLonger;
  }
  return aim;
}

// Of ResNet-50, whose steps have been measured by others, too.
void add_aims_of_resnet(Report& report, const Case& one, const Figures& named) {
  const JobShape& job = report.settings.job;
  std::vector<Rival> rivals;
  if (job.hosts > 1) {
    rivals = {{"a plain TCP stream of its bytes", "one-by-one", {"tcp-limit"}, 0.95}};
  } else if (job.ranks == 2) {
    const double by_mpi = one.distance == Distance::kFar ? 1.5 : 2;
    rivals = {{"torch's in buckets", "buckets", {"torch"}, 6},
              {"one allreduce of Open MPI's", "in-one-buffer", {"openmpi", "openmpi-malloc"}, by_mpi}};
    report.aims.push_back(aim_against_horovod(one, named));
  }
  for (const Rival& rival : rivals) add_aim(report, aim_against(report, one, named, rival));
}

Report run_gradients(const Site& site, const Settings& settings) {
  Report report = empty_report("gradients", settings);
  report.method =
      "Time in which the slowest rank sums all gradients of a step, last layer first, copies into buckets "
      "and back included.";
  const std::vector<std::uint64_t> tensors = tensors_backward(settings.job.model);
  for (const Packing& packing : kWaysToReduce) {
    const std::int64_t calls = buckets_of(tensors, packing.bucket_bytes).size();
    report.cases.push_back(
        {.name = packing.name, .label = fmt::format("{} ({})", packing.label, counted(calls, "call"))});
  }
  run_ranks(report, reducing_work(settings), site);
  std::error_code ignored;
  std::filesystem::remove(timeline_path(), ignored);
  for (const auto& [one, figures] : named_figures(report, "one-by-one")) {
    add_aim(report, aim_against_best(report, *one, *figures));
    if (settings.job.model == Model::kResnet50) add_aims_of_resnet(report, *one, *figures);
    if (const Figures* recorded = one->figures_of("ddl-named-timeline"))
      report.aims.push_back(aim_with_timeline(*one, *figures, *recorded));
  }
  return report;
}

Report run_overlap(const Site& site, const Settings& settings) {
  Report report = empty_report("overlap", settings);
  report.method =
      "Time of a step on the slowest rank: first of its communication alone, and then of the step in which "
      "the gradients come one by one. Computing is a sleep that takes as long as the contender's own "
      "communication.";
  for (const Packing& packing : kWaysToOverlap)
    report.cases.push_back({.name = packing.name, .label = packing.label});
  run_ranks(report, overlapping_work(settings), site);
  for (const auto& [one, alone] : named_figures(report, "communication")) {
    Aim aim{at_distance(*one) +
                "a step of named tensors takes at most 1.15 times its communication or its "
                "computing, which are equally long",
            "not measured", std::nullopt};
    for (const auto& [other, computing] : named_figures(report, "while-computing")) {
      if (other->distance != one->distance) continue;
      const auto ratio = ratio_of(*computing, *alone);
      if (!ratio) continue;
      aim.found = fmt::format("{:.2f} times ({:.2f} to {:.2f})", ratio->ratio, ratio->low, ratio->high);
      aim.met = ratio->ratio <= 1.15;
    }
    report.aims.push_back(aim);
  }
  return report;
}

int hosts_of_job(const Settings& settings) { return settings.job.hosts > 1 ? settings.job.hosts : 0; }

}  // namespace

std::vector<Benchmark> step_benchmarks() {
  return {{"gradients",
           "a training step's sums: all gradients of a model, one by one, in buckets and in one buffer",
           kStepBlocks,
           [](const Site& site, const Settings& settings) {
             return contenders_of(reducing_work(settings), site, settings);
           },
           run_gradients, hosts_of_job, true},
          {"overlap", "a training step that communicates while it computes", kStepBlocks,
           [](const Site& site, const Settings& settings) {
             return contenders_of(overlapping_work(settings), site, settings);
           },
           run_overlap, hosts_of_job, true}};
}

}  // namespace ddl::bench
