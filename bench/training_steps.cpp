// The steps of a training in C++ (ddl/training), on every rank as a whole or in slices: this program runs as each rank,
// under a launcher, and rank 0 prints a table.
//
//   ddlrun -np 2 training_steps [MODEL [ROUNDS]]      MODEL: resnet50, ...
//
// Rounds of both kinds alternate. A round is ten steps with gradients that are there already, so there is nothing to hide
// the communication behind. Medians over the rounds, in ms, and the smallest and the largest.
#include <algorithm>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <vector>

#include "bench/models.h"
#include "ddl/training/optimizer.hpp"
#include "ddl/training/sharded_optimizer.hpp"

namespace {

using namespace ddl::training;  // NOLINT(google-build-using-namespace): this program shows nothing else
using Clock = std::chrono::steady_clock;

constexpr int kSteps = 10;

double milliseconds_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

std::string median_of(std::vector<double> times) {
  std::sort(times.begin(), times.end());
  char text[96] = {};
  std::snprintf(text, sizeof text, "%8.2f (%.2f to %.2f)", times[times.size() / 2], times.front(),
                times.back());
  return text;
}

/// What is trained, in memory of this rank.
class Memory {
 public:
  explicit Memory(const std::vector<std::uint64_t>& counts) {
    for (const std::uint64_t count : counts) tensors_.emplace_back(count, 0.5f);
  }
  std::vector<Parameter> parameters() {
    std::vector<Parameter> all;
    for (std::size_t i = 0; i < tensors_.size(); ++i)
      all.push_back(parameter("tensor " + std::to_string(i), tensors_[i].data(), tensors_[i].size()));
    return all;
  }

 private:
  std::vector<std::vector<float>> tensors_;
};

/// Milliseconds of a step. submitting: of all ready() of a step.
template <class Optimizing, class Wait>
double time_steps(ddl::Context& context, Optimizing& optimizer, double* submitting, Wait wait) {
  context.barrier();
  double submitted = 0;
  const auto begin = Clock::now();
  for (int step = 0; step < kSteps; ++step) {
    const auto first = Clock::now();
    for (std::size_t i = optimizer.parameters().size(); i-- > 0;) optimizer.ready(i);
    submitted += milliseconds_since(first);
    optimizer.step();
    wait();
  }
  *submitting = submitted / kSteps;
  return milliseconds_since(begin) / kSteps;
}

void run(ddl::Context& context, ddl::bench::Model model, int rounds) {
  const std::vector<std::uint64_t> counts = ddl::bench::tensors_of(model);
  std::uint64_t elements = 0;
  for (const std::uint64_t count : counts) elements += count;
  Memory whole_memory(counts), sharded_memory(counts);
  Optimizer<Adam> whole(context, whole_memory.parameters(), Adam{});
  ShardedOptimizer<Adam> sharded(context, sharded_memory.parameters(), Adam{});
  std::vector<double> whole_times, sharded_times, whole_hooks, sharded_hooks;
  for (int round = -1; round < rounds; ++round) {  // the first one is not counted
    double hooks = 0;
    const double one = time_steps(context, whole, &hooks, [] {});
    const double one_hook = 1000 * hooks / static_cast<double>(counts.size());
    const double other = time_steps(context, sharded, &hooks, [&] { sharded.use_all(); });
    if (round < 0) continue;
    whole_times.push_back(one);
    whole_hooks.push_back(one_hook);
    sharded_times.push_back(other);
    sharded_hooks.push_back(1000 * hooks / static_cast<double>(counts.size()));
  }
  if (context.rank() != 0) return;
  std::vector<double> ratios;
  for (std::size_t i = 0; i < whole_times.size(); ++i) ratios.push_back(sharded_times[i] / whole_times[i]);
  std::printf("%s, %zu tensors, %.1f million elements, %d ranks, Adam\n", ddl::bench::name_of(model),
              counts.size(), static_cast<double>(elements) / 1e6, context.size());
  std::printf("  step, whole on each rank, ms   %s\n", median_of(whole_times).c_str());
  std::printf("  step, in slices, ms            %s\n", median_of(sharded_times).c_str());
  std::printf("  slices / whole, paired         %s\n", median_of(ratios).c_str());
  std::printf("  ready() of a tensor, whole, us %s\n", median_of(whole_hooks).c_str());
  std::printf("  ready() of a tensor, slices    %s\n", median_of(sharded_hooks).c_str());
  std::printf("  bytes for an element in slices %8.3f; the formula 8 + 8/N is %.3f\n",
              static_cast<double>(sharded.bytes()) / static_cast<double>(elements), 8 + 8.0 / context.size());
}

}  // namespace

int main(int argc, char** argv) {
  const auto model = ddl::bench::parse_model(argc > 1 ? argv[1] : "resnet50");
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 7;
  if (!model || rounds < 1) {
    std::fprintf(stderr, "usage: training_steps [MODEL [ROUNDS]]\n");
    return 2;
  }
  try {
    ddl::Context context;
    run(context, *model, rounds);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "training_steps: %s\n", error.what());
    std::_Exit(1);
  }
}
