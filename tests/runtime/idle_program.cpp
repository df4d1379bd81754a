// A rank that has made steps of named tensors, has one open, and does nothing, for a second. Exits with 0 if that cost under 0.1% of a core, libpmix's
// threads included.
#include <poll.h>
#include <sys/resource.h>

#include <cstdio>
#include <exception>

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

}  // namespace

int main() {
  try {
    ddl::Context context;
    context.barrier();
    long used = kLimit;
    for (int second = 0; second < kSeconds && used >= kLimit; ++second) {
      const long before = cpu_microseconds();
      ::poll(nullptr, 0, 1000);  // the CPU time of idling for this long is measured
      used = cpu_microseconds() - before;
    }
    context.barrier();
    std::printf("%s: rank %d used %ld microseconds of an idle second\n", used < kLimit ? "idle" : "busy",
                context.rank(), used);
    return used < kLimit ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
