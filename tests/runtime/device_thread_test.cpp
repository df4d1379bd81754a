// Collectives on memory of GPUs, with ranks as threads: the conformance suite, whose buffers support/device_calls.cpp
// puts on GPUs, and what only GPUs have.
#include <array>
#include <cstdlib>
#include <string>
#include <vector>

#include "runtime/support/conformance.h"
#include "runtime/support/expect.h"
#include "runtime/support/test_gpu.h"
#include "runtime/support/thread_job.h"
#include "support/catch.h"

namespace {

using ddl::conformance::expect_contains;
using ddl::conformance::expect_status;
using ddl::runtime::test::hosts_of_sizes;
using ddl::runtime::test::job_on;
using ddl::runtime::test::ThreadJob;

/// Unless all goes through CPU memory, NCCL rounds sums of 16-bit floats, and libddl's kernels what they make of them.
[[maybe_unused]] const bool kKeepsLess = [] {
  ddl::conformance::promises().rounds_once = std::getenv("DDL_GPU_OPERATIONS") != nullptr;
  return true;
}();

}  // namespace

TEST_CASE("collectives conform on memory of GPUs") {
  ThreadJob job = GENERATE(ThreadJob{.ranks = 1}, ThreadJob{.ranks = 2}, ThreadJob{.ranks = 4},
                           job_on(hosts_of_sizes({2, 1})));
  job.slot_bytes = 4096;
  job.agrees_first = true;
  CAPTURE(job.ranks);
  job.run([&](ddl_context*& context) { ddl::conformance::check_all(context, {0, 1, 2, 100, 1025}); });
}

TEST_CASE("process sets and Horovod's cases conform on memory of GPUs") {
  ThreadJob job;
  job.ranks = GENERATE(2, 3);
  job.run([&](ddl_context*& context) {
    ddl::conformance::check_process_sets(context);
    ddl::conformance::check_horovod_cases(context);
    ddl::conformance::check_random_operations(context, 5, 60);
  });
}

TEST_CASE("calls on memory of GPUs that are cut into chunks conform") {
  ThreadJob job = GENERATE(ThreadJob{.ranks = 1}, ThreadJob{.ranks = 3}, job_on(hosts_of_sizes({2, 1})));
  job.gpu_operations = ddl::contract::GpuOperations::kStaged;
  job.gpu_chunk_bytes = 4096;
  CAPTURE(job.ranks);
  job.run([&](ddl_context*& context) {
    ddl::conformance::check_all(context, {1, 511, 512, 513, 2500});
    ddl::conformance::check_random_operations(context, 6, 100);
    ddl::conformance::check_named_tensors(context, 8, 8);
  });
}

TEST_CASE("ranks whose chunks differ in size are told so") {
  ThreadJob job;
  job.ranks = 2;
  job.gpu_chunk_bytes_of_rank_1 = 8192;
  job.run([&](ddl_context*& context) {
    std::array<float, 10> data{};
    expect_status(
        ddl_allreduce(context, data.data(), data.data(), data.size(), DDL_FLOAT32, DDL_SUM, nullptr),
        DDL_ERROR_MISMATCH, "chunks");
    expect_contains(ddl_last_error(), "on a GPU, in chunks of 8192 bytes");
  });
}

TEST_CASE("named tensors on memory of GPUs conform") {
  ThreadJob job = GENERATE(ThreadJob{.ranks = 2}, ThreadJob{.ranks = 3}, job_on(hosts_of_sizes({2, 1})));
  CAPTURE(job.ranks);
  job.run([&](ddl_context*& context) { ddl::conformance::check_named_tensors(context, 7, 8); });
}
