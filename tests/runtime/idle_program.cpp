// A rank that has made steps of named tensors, has one open, and does nothing, for a second. Exits with 0 if that cost
// under 0.1% of a core, libpmix's threads and those of named tensors included.
#include <poll.h>
#include <sys/resource.h>

#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "ddl/ddl.hpp"

namespace {

/// Of CPU time.
constexpr long kLimit = 1000;
/// The first one includes the end of what was begun before, which costs more on a loaded machine.
constexpr int kSeconds = 3;

long cpu_microseconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1'000'000L + usage.ru_utime.tv_usec +
         usage.ru_stime.tv_usec;
}

/// Steps of several tensors, which libddl's own thread begins, then of one that is waited for at once, which it does
/// not: it looks now and then whether that is still so.
void make_steps(ddl::Context& context) {
  constexpr int kSteps = 10, kTensors = 8, kWaitedForAtOnce = 50;
  std::vector<std::vector<float>> gradients(kTensors, std::vector<float>(1000));
  for (int step = 0; step < kSteps; ++step) {
    std::vector<ddl::Future<void>> sums;
    for (std::size_t i = 0; i < gradients.size(); ++i)
      sums.push_back(context.allreduce_async("gradient " + std::to_string(i), gradients[i]));
    for (ddl::Future<void>& sum : sums) sum.get();
  }
  std::vector<float> loss(1);
  for (int step = 0; step < kWaitedForAtOnce; ++step) context.allreduce_async("loss", loss).get();
}

/// This rank's tensor, which the others have not submitted yet.
ddl::Future<void> submit_early(ddl::Context& context, std::vector<float>& values) {
  return context.allreduce_async("of rank " + std::to_string(context.rank()), values);
}

void submit_others(ddl::Context& context) {
  std::vector<float> values(1);
  for (int rank = 0; rank < context.size(); ++rank) {
    if (rank != context.rank()) context.allreduce_async("of rank " + std::to_string(rank), values).get();
  }
}

}  // namespace

int main() {
  try {
    ddl::Context context;
    make_steps(context);
    std::vector<float> values(1);
    ddl::Future<void> early = submit_early(context, values);
    context.barrier();
    long used = kLimit;
    for (int second = 0; second < kSeconds && used >= kLimit; ++second) {
      const long before = cpu_microseconds();
      ::poll(nullptr, 0, 1000);  // the CPU time of idling for this long is measured
      used = cpu_microseconds() - before;
    }
    context.barrier();
    submit_others(context);
    early.get();
    std::printf("%s: rank %d used %ld microseconds of an idle second\n", used < kLimit ? "idle" : "busy",
                context.rank(), used);
    return used < kLimit ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
