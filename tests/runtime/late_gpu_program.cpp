// A program that loads a GPU's library after it has made calls, as one that imports a framework late: libddl finds that
// its next buffers lie in memory of a GPU. Prints "the late GPU: sum 3" on two ranks.
#include <time.h>

#include <chrono>
#include <cstdio>
#include <stdexcept>

#include "ddl/ddl.hpp"
#include "runtime/support/expect.h"
#include "runtime/support/test_gpu.h"

using namespace ddl::conformance;
using ddl::runtime::test::TestGpu;

namespace {

long last_tick() {
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC_COARSE, &time);
  return time.tv_sec * 1'000'000'000 + time.tv_nsec;
}

/// A real library needs many ticks to begin, the stand-in none.
void wait_for_tick() {
  const long before = last_tick();
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (last_tick() == before) expect(std::chrono::steady_clock::now() < limit, "the clock does not tick");
}

}  // namespace

int main() try {
  ddl::Context context(60.0);
  float value = static_cast<float>(context.rank() + 1);
  float sum = 0;
  expect_status(ddl_allreduce(context.get(), &value, &sum, 1, DDL_FLOAT32, DDL_SUM, nullptr), DDL_OK,
                "an allreduce of CPU memory");
  wait_for_tick();
  TestGpu& gpu = TestGpu::get();
  gpu.use(context.rank() % gpu.count());
  auto* const memory = static_cast<float*>(gpu.allocate(sizeof value));
  gpu.copy(memory, &value, sizeof value, nullptr);
  gpu.synchronize(nullptr);
  expect_status(ddl_allreduce(context.get(), memory, memory, 1, DDL_FLOAT32, DDL_SUM, nullptr), DDL_OK,
                "an allreduce of memory of a GPU");
  sum = 0;
  gpu.copy(&sum, memory, sizeof sum, nullptr);
  gpu.synchronize(nullptr);
  gpu.free(memory);
  std::printf("the late GPU: sum %g\n", static_cast<double>(sum));
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "does not conform: %s\n", error.what());
  return 1;
}
