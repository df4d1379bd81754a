// Named tensors when MPI executes the collectives, and when the program lets only some threads call it.
#include <array>
#include <chrono>
#include <future>
#include <latch>
#include <string>
#include <utility>
#include <vector>

#include "runtime/support/conformance.h"
#include "runtime/support/expect.h"
#include "runtime/support/thread_job.h"
#include "support/catch.h"

using namespace ddl::conformance;
using ddl::runtime::test::MpiThreads;
using ddl::runtime::test::ThreadJob;

namespace {

/// On one host, on two, and on two of which one has ranks without a connection of their own.
ThreadJob job_by_mpi(MpiThreads level, int layout = 0) {
  ThreadJob job;
  job.ranks = 4;
  job.timeout_seconds = 20;
  job.mpi = level;
  if (layout == 1) job.hosts = {{0, 2}, {1, 3}};
  if (layout == 2) job.hosts = {{0, 1, 2}, {3}};
  return job;
}

ddl_handle* sum_by_mpi(ddl_context* context, const std::string& name, std::vector<float>& values,
                       const ddl_async_options* options = nullptr) {
  ddl_handle* handle = nullptr;
  expect_ok(ddl_allreduce_async(context, name.c_str(), values.data(), values.data(), values.size(),
                                DDL_FLOAT32, DDL_SUM, options, &handle),
            "allreduce_async");
  return handle;
}

struct CalledBack {
  std::promise<ddl_status> status;
  ddl_async_options options() {
    ddl_async_options options = DDL_ASYNC_OPTIONS_INIT;
    options.argument = &status;
    options.completed = [](void* argument, ddl_status of, const char*) {
      static_cast<std::promise<ddl_status>*>(argument)->set_value(of);
    };
    return options;
  }
  ddl_status wait() {
    auto future = status.get_future();
    expect(future.wait_for(std::chrono::seconds(10)) == std::future_status::ready, "there is no callback");
    return future.get();
  }
};

}  // namespace

TEST_CASE("MPI moves the inputs of a sum in several steps if a step is smaller") {
  ThreadJob job = job_by_mpi(MpiThreads::kMultiple, GENERATE(0, 1));
  job.slot_bytes = GENERATE(64, 512, 4096);
  job.run([&](ddl_context*& context) {
    std::vector<std::int32_t> values(700);
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<std::int32_t>(i) + ddl_rank(context);
    expect_ok(
        ddl_allreduce(context, values.data(), values.data(), values.size(), DDL_INT32, DDL_SUM, nullptr),
        "allreduce");
    for (std::size_t i = 0; i < values.size(); ++i)
      expect(values[i] == static_cast<std::int32_t>(4 * i) + 6, "the sum");
  });
}

TEST_CASE("named tensors by MPI in random steps have the bits of ordered collectives by MPI") {
  const int layout = GENERATE(0, 1, 2);
#ifdef DDL_TEST_SANITIZED
  constexpr int kSteps = 8;
#else
  constexpr int kSteps = 40;
#endif
  job_by_mpi(MpiThreads::kMultiple, layout).run([&](ddl_context*& context) {
    check_named_tensors(context, 4, kSteps);
  });
}

TEST_CASE("with several threads in MPI, tensors are executed though no thread waits") {
  job_by_mpi(MpiThreads::kMultiple, GENERATE(0, 1)).run([&](ddl_context*& context) {
    std::vector<float> values(100, 1.0f);
    CalledBack called;
    const ddl_async_options options = called.options();
    ddl_handle* const handle = sum_by_mpi(context, "x", values, &options);
    expect(called.wait() == DDL_OK, "the status");
    expect_ok(ddl_wait(handle), "wait");
    expect(values[99] == 4.0f, "the sum");
  });
}

TEST_CASE("if MPI does not take several threads, only threads that wait, and may call it, make progress") {
  const MpiThreads level = GENERATE(MpiThreads::kFunneled, MpiThreads::kSerialized);
  // The job fails if another thread calls MPI.
  job_by_mpi(level, GENERATE(0, 1)).run([&](ddl_context*& context) {
    for (int step = 0; step < 30; ++step) {
      constexpr std::size_t kTensors = 8;
      std::vector<std::vector<float>> values(kTensors, std::vector<float>(20, 1.0f));
      std::array<ddl_handle*, kTensors> handles{};
      const auto submit = [&](std::size_t first, std::size_t end) {
        for (std::size_t i = first; i < end; ++i)
          handles[i] = sum_by_mpi(context, std::to_string(i), values[i]);
      };
      // Another thread may submit tensors, and wait for the main one to execute them.
      std::promise<void> handed_over;
      auto other = std::async(std::launch::async, [&] {
        submit(0, 4);
        ddl_handle* const first = std::exchange(handles[0], nullptr);
        handed_over.set_value();
        expect_ok(ddl_wait(first), "wait in another thread");
      });
      submit(4, kTensors);
      std::int32_t done = 0;
      expect_ok(ddl_test(handles[4], &done), "test");
      float ordered = 1.0f;
      expect_ok(ddl_allreduce(context, &ordered, &ordered, 1, DDL_FLOAT32, DDL_SUM, nullptr), "ordered");
      handed_over.get_future().wait();
      expect_ok(ddl_wait_all(handles.data(), kTensors), "wait_all");
      // Complete when all are that were submitted before.
      std::vector<float> last(1, 1.0f);
      ddl_async_options options = DDL_ASYNC_OPTIONS_INIT;
      options.priority = -1;
      expect_ok(ddl_wait(sum_by_mpi(context, "last", last, &options)), "last");
      other.get();
      for (const auto& of : values) expect(of[19] == 4.0f, "the sum");
    }
    std::int32_t last = -1;
    expect_ok(ddl_join(context, DDL_WORLD, &last), "join");
  });
}

TEST_CASE("threads that may not call MPI learn of an abort, also before any that may has waited") {
  const bool is_connected = GENERATE(false, true);
  std::latch all_are_here(4);
  job_by_mpi(MpiThreads::kFunneled, GENERATE(0, 1)).run([&](ddl_context*& context) {
    std::vector<float> first(1), values(3), others(3);
    if (is_connected) expect_ok(ddl_wait(sum_by_mpi(context, "first", first)), "first");
    CalledBack called;
    const ddl_async_options options = called.options();
    expect_ok(ddl_allreduce_async(context, "called back", values.data(), values.data(), 3, DDL_FLOAT32,
                                  DDL_SUM, &options, nullptr),
              "allreduce_async");
    ddl_handle* const handle = sum_by_mpi(context, "waited for", others);
    auto waits = std::async(std::launch::async, [&] { return ddl_wait(handle); });
    all_are_here.arrive_and_wait();
    if (ddl_rank(context) == 1) (void)ddl_abort(context, 3, "enough");
    expect(called.wait() == DDL_ERROR_ABORTED, "the status that is called back");
    expect(waits.get() == DDL_ERROR_ABORTED, "the status that is waited for");
  });
}

TEST_CASE("a rank whose MPI does not take several threads leaves with open tensors") {
  job_by_mpi(MpiThreads::kFunneled, GENERATE(0, 1)).run([&](ddl_context*& context) {
    std::vector<float> values(3);
    ddl_handle* const handle = sum_by_mpi(context, "open", values);
    expect_ok(ddl_finalize(context), "finalize");
    context = nullptr;
    // Another rank may have left before.
    const ddl_status status = ddl_wait(handle);
    expect(status == DDL_ERROR_ABORTED || status == DDL_ERROR_PEER_LOST,
           std::string("the status is ") + ddl_status_name(status));
  });
}
