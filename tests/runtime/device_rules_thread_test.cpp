// What only calls on memory of GPUs have: streams, GPUs, mixed memory, failures of a GPU. The buffers are the test's own:
// device_calls.cpp, which the other tests of this program go through, leaves calls with a stream as they are.
#include <atomic>
#include <chrono>
#include <numeric>
#include <string>
#include <vector>

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
using ddl::runtime::test::OnGpu;
using ddl::runtime::test::sum;
using ddl::runtime::test::TestGpu;
using ddl::runtime::test::ThreadJob;

}  // namespace

TEST_CASE("a call on a stream comes after what is on it, and before what is put on it later", "[one-gpu]") {
  ThreadJob job;
  job.ranks = 2;
  job.gpu_chunk_bytes = 4096;
  job.run([](ddl_context*& context) {
    const OnGpu on(context);
    std::vector<float> values(5000);
    std::iota(values.begin(), values.end(), 0.0f);
    for (int round = 0; round < 20; ++round) {
      // Nothing waits between the copies and the call.
      Floats floats(on, values);
      expect_ok(sum(context, floats, on), "sum");
      const std::vector<float> results = floats.values();
      for (std::size_t i = 0; i < results.size(); ++i)
        expect(results[i] == 2 * values[i], "element " + std::to_string(i));
    }
  });
}

TEST_CASE(
    "a named tensor on a GPU is taken after what was on its stream, and is there when its handle is "
    "complete",
    "[one-gpu]") {
  ThreadJob job;
  job.ranks = 2;
  job.run([](ddl_context*& context) {
    const OnGpu on(context);
    Floats late(on, std::vector<float>(1000, 3.0f));
    expect(late.values().front() == 3.0f, "the first values");
    Gate gate;
    gate.hold(on.stream());
    const std::vector<float> values(1000, 4.0f);
    TestGpu::get().copy(late.data(), values.data(), values.size() * sizeof(float), on.stream());
    ddl_async_options options = DDL_ASYNC_OPTIONS_INIT;
    options.stream = on.stream();
    ddl_handle* handle = nullptr;
    expect_ok(ddl_allreduce_async(context, "late", late.data(), late.data(), late.size(), DDL_FLOAT32,
                                  DDL_SUM, &options, &handle),
              "late");
    std::int32_t done = 1;
    expect_ok(ddl_test(handle, &done), "test");
    expect(done == 0, "the tensor was taken before its stream had come so far");
    gate.open();
    expect_ok(ddl_wait(handle), "wait");
    expect(late.values() == std::vector<float>(1000, 8.0f), "the result");
  });
}

TEST_CASE("the result of a gathered tensor lies on the GPU of its input", "[one-gpu]") {
  ThreadJob job;
  job.ranks = 2;
  job.run([](ddl_context*& context) {
    const OnGpu on(context);
    const int rank = ddl_rank(context);
    Floats own(on, std::vector<float>(static_cast<std::size_t>(rank + 1), static_cast<float>(rank)));
    ddl_async_options options = DDL_ASYNC_OPTIONS_INIT;
    options.stream = on.stream();
    ddl_handle* handle = nullptr;
    void* result = nullptr;
    std::vector<std::uint64_t> counts(2);
    expect_ok(ddl_allgatherv_async(context, "gathered", own.data(), own.size(), &result, counts.data(),
                                   DDL_FLOAT32, &options, &handle),
              "gather");
    expect_ok(ddl_wait(handle), "wait");
    std::vector<float> got(3);
    TestGpu::get().copy(got.data(), result, got.size() * sizeof(float), on.stream());
    TestGpu::get().synchronize(on.stream());
    expect(got == std::vector<float>{0, 1, 1} && counts == std::vector<std::uint64_t>{1, 2}, "the parts");
    expect_ok(ddl_free(context, result), "free");
    // What is not freed, the context frees.
    expect_ok(ddl_allgatherv_async(context, "kept", own.data(), own.size(), &result, nullptr, DDL_FLOAT32,
                                   &options, &handle),
              "gather");
    expect_ok(ddl_wait(handle), "wait");
  });
}

TEST_CASE("the GPU that is current stays so") {
  ThreadJob job;
  job.ranks = 2;
  job.run([](ddl_context*& context) {
    const OnGpu on(context);
    Floats floats(on, {1.0f});
    const int other = 1 - on.gpu();
    TestGpu::get().use(other);
    expect_ok(sum(context, floats, on), "sum");
    expect(TestGpu::get().current() == other, "another GPU is current after a call");
    TestGpu::get().use(on.gpu());
    expect(floats.values() == std::vector<float>{2.0f}, "the sum");
  });
}

TEST_CASE("calls on memory of GPUs that cannot be made are refused") {
  ThreadJob job;
  job.run([](ddl_context*& context) {
    const OnGpu on(0), other(1);
    TestGpu::get().use(0);
    Floats floats(on, {1.0f, 2.0f});
    TestGpu::get().use(1);
    Floats elsewhere(other, {1.0f, 2.0f});
    std::vector<float> here(2);
    const auto refused = [&](const void* send, void* recv, const char* part) {
      expect_status(ddl_allreduce(context, send, recv, 2, DDL_FLOAT32, DDL_SUM, &on.options),
                    DDL_ERROR_INVALID_ARGUMENT, part);
      expect_contains(ddl_last_error(), part);
    };
    TestGpu::get().use(0);
    refused(floats.data(), here.data(), "send lies in memory of GPU 0, and recv in CPU memory");
    refused(here.data(), floats.data(), "send lies in CPU memory, and recv in memory of GPU 0");
    refused(floats.data(), elsewhere.data(), "send lies in memory of GPU 0, and recv in memory of GPU 1");
    refused(here.data(), here.data(), "a stream is given, but the buffers lie in CPU memory");
    expect_status(ddl_barrier(context, &on.options), DDL_ERROR_INVALID_ARGUMENT, "a barrier");

    TestGpu::get().begin_capture(on.stream());
    expect_status(sum(context, floats, on), DDL_ERROR_UNSUPPORTED, "a graph");
    expect_contains(ddl_last_error(), " graph");
    TestGpu::get().end_capture(on.stream());
    expect_ok(sum(context, floats, on), "after it");
    expect(floats.values() == std::vector<float>{1.0f, 2.0f}, "the sum of one");
  });
}

TEST_CASE("ranks whose buffers lie in different kinds of memory are told so", "[one-gpu]") {
  ThreadJob job;
  job.ranks = 2;
  job.run([](ddl_context*& context) {
    const OnGpu on(context);
    Floats floats(on, {1.0f, 2.0f});
    std::vector<float> here(2);
    ddl_handle* handle = nullptr;
    ddl_async_options options = DDL_ASYNC_OPTIONS_INIT;
    if (ddl_rank(context) == 0) {
      options.stream = on.stream();
      expect_ok(ddl_allreduce_async(context, "mixed", floats.data(), floats.data(), 2, DDL_FLOAT32, DDL_SUM,
                                    &options, &handle),
                "on the GPU");
    } else {
      // Grouped calls are not wrapped, so these buffers stay on the host.
      const ddl_tensor tensor{"mixed", here.data(), here.data(), 2};
      expect_ok(ddl_grouped_allreduce_async(context, &tensor, 1, DDL_FLOAT32, DDL_SUM, &options, &handle),
                "on the host");
    }
    expect_status(ddl_wait(handle), DDL_ERROR_MISMATCH, "mixed memory");
    expect_contains(ddl_last_error(), "on a GPU");
  });
}

TEST_CASE("a rank whose GPU fails is named by all ranks") {
  ThreadJob job;
  job.ranks = 3;
  job.gpu_operations = ddl::contract::GpuOperations::kStaged;
  const bool cuts = GENERATE(false, true);
  if (cuts) job.gpu_chunk_bytes = 4096;
  job.run([](ddl_context*& context) {
    const OnGpu on(context);
    Floats floats(on, std::vector<float>(5000, 1.0f));
    if (ddl_rank(context) == 1) TestGpu::get().fail_next_copy();
    const ddl_status status = sum(context, floats, on);
    expect(status != DDL_OK, "the call succeeded");
    const std::string message = ddl_last_error();
    expect_contains(message, "rank 1 on ");
    expect_contains(message, "emcpyAsync: ");
    ddl_finalize(context);
    context = nullptr;
  });
}

TEST_CASE("a rank that waits for its stream notices that the job was aborted", "[one-gpu]") {
  ThreadJob job;
  job.ranks = 2;
  job.gpu_operations = ddl::contract::GpuOperations::kStaged;
  Gate gate;
  job.run([&](ddl_context*& context) {
    const OnGpu on(context);
    Floats floats(on, std::vector<float>(10, 1.0f));
    // The first call pins memory, which waits for all work of the GPU.
    expect_ok(sum(context, floats, on), "the first call");
    if (ddl_rank(context) == 0) {
      gate.hold(on.stream());
      const ddl_status status = sum(context, floats, on);
      gate.open();  // what follows waits for the stream
      expect_status(status, DDL_ERROR_ABORTED, "a stream that does not go on");
      expect_contains(ddl_last_error(), "rank 1 on ");
    } else {
      expect_ok(ddl_abort(context, 3, "enough"), "abort");
    }
    ddl_finalize(context);
    context = nullptr;
  });
}

TEST_CASE("a rank whose stream does not go on is named after the timeout", "[one-gpu]") {
  ThreadJob job;
  job.ranks = 2;
  job.gpu_operations = ddl::contract::GpuOperations::kStaged;
  Gate gate;
  std::atomic<int> left{2};
  job.run([&](ddl_context*& context) {
    OnGpu on(context);
    Floats floats(on, std::vector<float>(10, 1.0f));
    expect_ok(sum(context, floats, on), "the first call, which pins memory");
    on.options.timeout_seconds = 0.3;
    if (ddl_rank(context) == 0) gate.hold(on.stream());
    const ddl_status status = sum(context, floats, on);
    const std::string message = ddl_last_error();
    // Not before the other rank has its error, too.
    if (--left == 0) gate.open();
    expect_status(status, DDL_ERROR_TIMEOUT, "a stream that does not go on");
    expect_contains(message, "rank 0 on ");
    ddl_finalize(context);
    context = nullptr;
  });
}
