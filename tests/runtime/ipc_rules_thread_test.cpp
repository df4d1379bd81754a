// What only ranks that share a GPU have, over the stand-ins: no copies through CPU memory, memory that cannot be
// shared, calls that need the host, and streams.
#include <barrier>
#include <numeric>
#include <vector>

#include "runtime/support/conformance.h"
#include "runtime/support/expect.h"
#include "runtime/support/on_gpu.h"
#include "runtime/support/test_gpu.h"
#include "runtime/support/thread_job.h"
#include "support/catch.h"

namespace {

using ddl::conformance::expect;
using ddl::conformance::expect_contains;
using ddl::conformance::expect_ok;
using ddl::conformance::expect_status;
using ddl::runtime::test::Floats;
using ddl::runtime::test::Gate;
using ddl::runtime::test::hosts_of_sizes;
using ddl::runtime::test::job_on;
using ddl::runtime::test::OnGpu;
using ddl::runtime::test::sum;
using ddl::runtime::test::TestGpu;
using ddl::runtime::test::ThreadJob;

/// Ranks of one host, with what the environment says: this is of interest only if it leaves the choice to libddl.
ThreadJob sharing_job(int ranks) {
  ThreadJob job = job_on(hosts_of_sizes({ranks}));
  job.gpu_operations = ddl::contract::GpuOperations::kAuto;
  return job;
}

void expect_sum(Floats& floats, float expected) {
  for (const float value : floats.values()) expect(value == expected, "a wrong sum");
}

/// All ranks of the test program's wrapped calls use one GPU, until the end of the scope.
class OneGpuForAll {
 public:
  OneGpuForAll() { ddl::runtime::test::all_ranks_share_a_gpu() = true; }
  ~OneGpuForAll() { ddl::runtime::test::all_ranks_share_a_gpu() = false; }
  OneGpuForAll(const OneGpuForAll&) = delete;
  OneGpuForAll& operator=(const OneGpuForAll&) = delete;
};

}  // namespace

TEST_CASE("collectives and named tensors of ranks that share a GPU conform, to the bits of the host") {
  const OneGpuForAll shared;
  const auto usual = ddl::conformance::promises();
  ddl::conformance::promises() = {.rounds_once = true, .has_canonical_order = true};
  ThreadJob job = sharing_job(GENERATE(2, 4));
  job.slot_bytes = 4096;
  CAPTURE(job.ranks);
  job.run([&](ddl_context*& context) {
    ddl::conformance::check_all(context, {0, 1, 2, 100, 1025});
    ddl::conformance::check_process_sets(context);
    ddl::conformance::check_random_operations(context, 9, 60);
    ddl::conformance::check_named_tensors(context, 7, 8);
  });
  ddl::conformance::promises() = usual;
}

TEST_CASE("an allreduce of ranks that share a GPU copies nothing; through CPU memory it copies") {
  sharing_job(2).run([](ddl_context*& context) {
    const OnGpu on(0);
    Floats floats(on, std::vector<float>(1000, 1.0f));
    expect_ok(sum(context, floats, on), "the first call");
    TestGpu::get().fail_next_copy();
    expect_ok(sum(context, floats, on), "a call that copies nothing");
    // A scan is none of theirs.
    expect_status(
        ddl_scan(context, floats.data(), floats.data(), floats.size(), DDL_FLOAT32, DDL_SUM, &on.options),
        DDL_ERROR_ABORTED, "a call whose copy fails");
    expect_contains(ddl_last_error(), "cannot go on during ");
    ddl_finalize(context);
    context = nullptr;
  });
}

TEST_CASE("memory that other processes cannot open goes through CPU memory, on all ranks alike") {
  sharing_job(3).run([](ddl_context*& context) {
    const OnGpu on(0);
    Floats shared(on, std::vector<float>(1000, 1.0f)), alone(on, std::vector<float>(1000, 1.0f));
    if (ddl_rank(context) == 1) TestGpu::get().keep_private(alone.data());
    float expected = 1;
    for (int round = 0; round < 3; ++round) {
      expected *= 3;
      expect_ok(sum(context, shared, on), "memory that can be opened");
      expect_ok(sum(context, alone, on), "memory of one rank that cannot be opened");
    }
    expect_sum(shared, expected);
    expect_sum(alone, expected);
  });
}

TEST_CASE("a call of ranks that share a GPU returns before its stream has come so far", "[one-gpu]") {
  Gate gate;
  sharing_job(2).run([&](ddl_context*& context) {
    const OnGpu on(0);
    Floats floats(on, std::vector<float>(1000, 1.0f));
    expect_ok(sum(context, floats, on), "the first call");
    if (ddl_rank(context) == 0) gate.hold(on.stream());
    for (int i = 0; i < 3; ++i) expect_ok(sum(context, floats, on), "a call while a stream is held");
    // All have returned.
    expect_ok(ddl_barrier(context, nullptr), "a barrier");
    if (ddl_rank(context) == 0) gate.open();
    expect_sum(floats, 16.0f);
  });
}

TEST_CASE("a deadline ends a call of ranks that share a GPU, whose stream is held", "[one-gpu]") {
  Gate gate;
  std::barrier both(2);
  ThreadJob job = sharing_job(2);
  job.timeout_seconds = 1;
  job.run([&](ddl_context*& context) {
    const OnGpu on(0);
    Floats floats(on, std::vector<float>(1000, 1.0f));
    expect_ok(sum(context, floats, on), "the first call");
    expect_ok(ddl_barrier(context, nullptr), "a barrier");
    if (ddl_rank(context) == 0) gate.hold(on.stream());
    // It returns; a later call is told what has become of it.
    expect_ok(sum(context, floats, on), "a call while a stream is held");
    ddl_status status = DDL_OK;
    while (status == DDL_OK) status = ddl_barrier(context, nullptr);
    both.arrive_and_wait();
    gate.open();
    expect_status(status, DDL_ERROR_TIMEOUT, "a call after the deadline");
    // What has been put on the GPU uses the buffers of both.
    TestGpu::get().synchronize(on.stream());
    both.arrive_and_wait();
    ddl_finalize(context);
    context = nullptr;
  });
}

TEST_CASE("an alltoall within one buffer, and buffers that come and go, are right", "[one-gpu]") {
  sharing_job(3).run([](ddl_context*& context) {
    const OnGpu on(0);
    const int rank = ddl_rank(context);
    for (int round = 0; round < 100; ++round) {
      // Sizes that put other buffers in the same place.
      const std::size_t count = static_cast<std::size_t>(100 + (round * 37 + rank * 11) % 900);
      const Floats first(on, std::vector<float>(count, 0.0f));
      Floats floats(on, std::vector<float>(300, 1.0f));
      expect_ok(sum(context, floats, on), "an allreduce");
      expect_sum(floats, 3.0f);
    }
    std::vector<float> values(6);
    std::iota(values.begin(), values.end(), static_cast<float>(rank * 10));
    Floats floats(on, values);
    expect_ok(ddl_alltoall(context, floats.data(), floats.data(), 2, DDL_FLOAT32, &on.options),
              "an alltoall");
    const std::vector<float> result = floats.values();
    for (int from = 0; from < 3; ++from) {
      const auto at = static_cast<std::size_t>(2 * from);
      expect(result[at] == static_cast<float>(from * 10 + 2 * rank) && result[at + 1] == result[at] + 1,
             "a wrong block");
    }
  });
}
