// The steps of a training in C++ (ddl/training), on every rank as a whole or in slices: this program runs as each rank,
// under a launcher, and rank 0 prints a table.
//
//   ddlrun -np 2 training_steps [MODEL [ROUNDS]]      MODEL: resnet50, ...
//
// Rounds of both kinds alternate. A round is ten steps with gradients that are there already, so there is nothing to hide
// the communication behind. Medians over the rounds, in ms, and the smallest and the largest.
#include <sys/resource.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <vector>

#include "bench/models.h"
#include "bench/training_memory.h"
#include "ddl/training/optimizer.hpp"
#include "ddl/training/sharded_optimizer.hpp"

namespace {

using namespace ddl::training;  // NOLINT(google-build-using-namespace): this program shows nothing else
using Clock = std::chrono::steady_clock;

constexpr int kSteps = 10;

double milliseconds_since(Clock::time_point begin) { return 1e3 * ddl::bench::seconds_since(begin); }

std::string median_of(std::vector<double> times) {
  std::sort(times.begin(), times.end());
  char text[96] = {};
  std::snprintf(text, sizeof text, "%8.2f (%.2f to %.2f)", times[times.size() / 2], times.front(),
                times.back());
  return text;
}

/// What this thread has computed; without the time in which others had its core, or in which it slept.
double milliseconds_on_cpu() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return 1e3 * static_cast<double>(now.tv_sec) + 1e-6 * static_cast<double>(now.tv_nsec);
}

/// Of all ready() of a step, in milliseconds.
struct Submitting {
  double elapsed = 0, on_cpu = 0;
  double sleeps = 0;  ///< how often the thread gave its core up by itself, as for a lock
};

double sleeps_of_thread() {
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  return static_cast<double>(usage.ru_nvcsw);
}

/// Milliseconds of a step.
template <class Optimizing, class Wait>
double time_steps(ddl::Context& context, Optimizing& optimizer, Submitting& submitting, Wait wait) {
  context.barrier();
  submitting = {};
  const auto begin = Clock::now();
  for (int step = 0; step < kSteps; ++step) {
    const auto first = Clock::now();
    const double first_on_cpu = milliseconds_on_cpu(), first_sleeps = sleeps_of_thread();
    for (std::size_t i = optimizer.parameters().size(); i-- > 0;) optimizer.ready(i);
    submitting.on_cpu += (milliseconds_on_cpu() - first_on_cpu) / kSteps;
    submitting.elapsed += milliseconds_since(first) / kSteps;
    submitting.sleeps += (sleeps_of_thread() - first_sleeps) / kSteps;
    optimizer.step();
    wait();
  }
  return milliseconds_since(begin) / kSteps;
}

void run(ddl::Context& context, ddl::bench::Model model, int rounds) {
  const std::vector<std::uint64_t> counts = ddl::bench::tensors_of(model);
  std::uint64_t elements = 0;
  for (const std::uint64_t count : counts) elements += count;
  ddl::bench::TrainedMemory whole_memory(counts), sharded_memory(counts);
  Optimizer<Adam> whole(context, whole_memory.parameters(), Adam{});
  ShardedOptimizer<Adam> sharded(context, sharded_memory.parameters(), Adam{});
  std::vector<double> whole_times, sharded_times, whole_hooks, sharded_hooks, whole_cpu, sharded_cpu, sleeps;
  const double microseconds =
      1000 / static_cast<double>(counts.size());   // of a tensor, for a step's milliseconds
  for (int round = -1; round < rounds; ++round) {  // the first one is not counted
    Submitting of_whole, of_sharded;
    const double one = time_steps(context, whole, of_whole, [] {});
    const double other = time_steps(context, sharded, of_sharded, [&] { sharded.use_all(); });
    if (round < 0) continue;
    whole_times.push_back(one);
    whole_hooks.push_back(microseconds * of_whole.elapsed);
    whole_cpu.push_back(microseconds * of_whole.on_cpu);
    sleeps.push_back(of_whole.sleeps);
    sharded_times.push_back(other);
    sharded_hooks.push_back(microseconds * of_sharded.elapsed);
    sharded_cpu.push_back(microseconds * of_sharded.on_cpu);
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
  std::printf("    of it on the CPU             %s\n", median_of(whole_cpu).c_str());
  std::printf("    sleeps in all of a step      %s\n", median_of(sleeps).c_str());
  std::printf("  ready() of a tensor, slices    %s\n", median_of(sharded_hooks).c_str());
  std::printf("    of it on the CPU             %s\n", median_of(sharded_cpu).c_str());
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
