// Which thread calls back when a named tensor is complete.
#include <pthread.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <future>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "runtime/support/expect.h"
#include "runtime/support/thread_job.h"
#include "support/catch.h"

using namespace ddl::conformance;
using namespace std::chrono_literals;
using ddl::runtime::test::MpiThreads;
using ddl::runtime::test::ThreadJob;

namespace {

/// What a callback saw.
struct Completion {
  std::thread::id thread;
  std::string thread_name;
  ddl_status status = DDL_OK;
  std::string message;
};

/// One tensor's callback.
class CallbackThread {
 public:
  ddl_async_options options(std::uint64_t set = DDL_WORLD) {
    ddl_async_options options = DDL_ASYNC_OPTIONS_INIT;
    options.process_set = set;
    options.argument = &completed_;
    options.completed = [](void* argument, ddl_status status, const char* message) {
      std::array<char, 16> name{};
      ::pthread_getname_np(::pthread_self(), name.data(), name.size());
      static_cast<std::promise<Completion>*>(argument)->set_value(
          {std::this_thread::get_id(), name.data(), status, message});
    };
    return options;
  }
  Completion wait() {
    auto future = completed_.get_future();
    expect(future.wait_for(10s) == std::future_status::ready, "there was no callback");
    return future.get();
  }
  /// For a callback that must have returned.
  Completion get() {
    auto future = completed_.get_future();
    expect(future.wait_for(0s) == std::future_status::ready, "there has been no callback");
    return future.get();
  }

 private:
  std::promise<Completion> completed_;
};

ddl_handle* submit_sum(ddl_context* context, const char* name, std::vector<float>& values,
                       const ddl_async_options& options) {
  ddl_handle* handle = nullptr;
  expect_ok(ddl_allreduce_async(context, name, values.data(), values.data(), values.size(), DDL_FLOAT32,
                                DDL_SUM, &options, &handle),
            "allreduce_async");
  return handle;
}

/// Tensors of which a group lacks another one: they stay open.
ddl_handle* submit_part(ddl_context* context, std::vector<float>& values, ddl_async_options options) {
  options.group = "group";
  options.group_size = 2;
  return submit_sum(context, "x", values, options);
}

/// libddl's own threads make calls; or only threads that wait do.
std::optional<MpiThreads> own_threads_or_not() {
  return GENERATE(std::optional<MpiThreads>(), std::optional(MpiThreads::kSerialized));
}

void expect_left(const Completion& completion, bool by_this_thread) {
  expect(completion.status == DDL_ERROR_ABORTED,
         std::string("status: ") + ddl_status_name(completion.status));
  expect_contains(completion.message, "this rank left the process set before the tensor was complete");
  const bool is_here = completion.thread == std::this_thread::get_id();
  // libddl's own thread may be in a call when the rank leaves.
  expect(is_here || (!by_this_thread && completion.thread_name == "ddl-tensors"),
         "called back on " + completion.thread_name);
}

}  // namespace

TEST_CASE("libddl's own thread calls back if no thread waits") {
  ThreadJob job;
  job.ranks = 2;
  job.run([](ddl_context*& context) {
    std::vector<float> values(4, 1.0f);
    CallbackThread callback;
    ddl_handle* const handle = submit_sum(context, "x", values, callback.options());
    const Completion completion = callback.wait();
    expect(completion.status == DDL_OK && completion.message.empty(), completion.message);
    expect(completion.thread != std::this_thread::get_id(), "called back on the thread of the program");
    expect(completion.thread_name == "ddl-tensors", "called back on " + completion.thread_name);
    expect_ok(ddl_wait(handle), "wait");
  });
}

TEST_CASE("a thread that waits calls back if libddl's own must not call MPI") {
  ThreadJob job;
  job.ranks = 2;
  job.mpi = GENERATE(MpiThreads::kFunneled, MpiThreads::kSerialized);
  job.run([](ddl_context*& context) {
    // The thread waits for another tensor than the one that is called back.
    std::vector<float> values(4, 1.0f), others(4, 1.0f);
    CallbackThread callback;
    ddl_handle* const handle = submit_sum(context, "x", values, callback.options());
    ddl_handle* const other = submit_sum(context, "y", others, DDL_ASYNC_OPTIONS_INIT);
    expect_ok(ddl_wait(other), "y");
    expect_ok(ddl_wait(handle), "x");
    const Completion completion = callback.get();
    expect(completion.status == DDL_OK, completion.message);
    expect(completion.thread == std::this_thread::get_id(), "called back on " + completion.thread_name);
  });
}

TEST_CASE("a rank that leaves the job with an open tensor calls back before ddl_finalize returns") {
  ThreadJob job;
  job.mpi = own_threads_or_not();
  job.run([&](ddl_context*& context) {
    std::vector<float> values(4, 1.0f);
    CallbackThread callback;
    ddl_handle* const handle = submit_part(context, values, callback.options());
    expect_ok(ddl_finalize(context), "finalize");
    context = nullptr;
    expect_left(callback.get(), job.mpi.has_value());
    expect_status(ddl_wait(handle), DDL_ERROR_ABORTED, "wait");
    expect_contains(ddl_last_error(), "this rank left the process set before the tensor was complete");
  });
}

TEST_CASE("a rank that frees a process set with an open tensor calls back before that returns") {
  ThreadJob job;
  job.ranks = 2;
  job.mpi = own_threads_or_not();
  job.run([&](ddl_context*& context) {
    // Of each rank alone: no other one waits for it, or leaves before it.
    std::uint64_t set = 0;
    expect_ok(ddl_process_set_split(context, DDL_WORLD, ddl_rank(context), 0, &set), "split");
    std::vector<float> values(4, 1.0f);
    CallbackThread callback;
    ddl_handle* const handle = submit_part(context, values, callback.options(set));
    expect_ok(ddl_process_set_free(context, set), "free");
    expect_left(callback.get(), job.mpi.has_value());
    expect_status(ddl_wait(handle), DDL_ERROR_ABORTED, "wait");
    expect_ok(ddl_barrier(context, nullptr), "the world goes on");
  });
}
