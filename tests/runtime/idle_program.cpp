// A rank that has joined and does nothing, for a second. Exits with 0 if that cost under 0.1% of a core, libpmix's
// threads included.
#include <poll.h>
#include <sys/resource.h>

#include <cstdio>
#include <exception>

#include "ddl/ddl.hpp"

namespace {

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
    const long before = cpu_microseconds();
    ::poll(nullptr, 0, 1000);  // the CPU time of idling for this long is measured
    const long used = cpu_microseconds() - before;
    context.barrier();
    std::printf("%s: rank %d used %ld microseconds of an idle second\n", used < 1000 ? "idle" : "busy",
                context.rank(), used);
    return used < 1000 ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
