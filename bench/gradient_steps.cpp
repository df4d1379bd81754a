// The benchmark "gradients".
#include <fmt/format.h>

#include "base/text.h"
#include "bench/benchmarks.h"
#include "bench/gradients.h"
#include "bench/rank_runs.h"

namespace ddl::bench {
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
      "and "
      "back included.";
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
  return {
      "gradients",
      "a training step's sums: all gradients of a model, one by one and in buckets",
      kStepBlocks,
      [](const Site& site, const Settings& settings) { return peers_of(work_of(settings), site, settings); },
      run_gradients,
      [](const Settings& settings) { return settings.job.hosts > 1 ? settings.job.hosts : 0; },
      true};
}

}  // namespace ddl::bench
