// A program that loads a GPU's library after it has made calls, as one that imports a framework late: libddl finds that
// its next buffers lie in memory of a GPU. Prints "the late GPU: sum 3" on two ranks.
#include <cstdio>
#include <stdexcept>

#include "ddl/ddl.hpp"
#include "runtime/support/expect.h"
#include "runtime/support/test_gpu.h"

using namespace ddl::conformance;
using ddl::runtime::test::TestGpu;

int main() try {
  ddl::Context context(60.0);
  float value = static_cast<float>(context.rank() + 1);
  float sum = 0;
  for (int call = 0; call < 3; ++call)
    expect_ok(ddl_allreduce(context.get(), &value, &sum, 1, DDL_FLOAT32, DDL_SUM, nullptr),
              "an allreduce of CPU memory");
  TestGpu& gpu = TestGpu::get();
  gpu.use(context.rank() % gpu.count());
  auto* const memory = static_cast<float*>(gpu.allocate(sizeof value));
  gpu.copy(memory, &value, sizeof value, nullptr);
  gpu.synchronize(nullptr);
  expect_ok(ddl_allreduce(context.get(), memory, memory, 1, DDL_FLOAT32, DDL_SUM, nullptr),
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
