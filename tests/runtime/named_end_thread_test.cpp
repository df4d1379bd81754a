// Named tensors when something ends: a rank joins, leaves or aborts, a tensor fails, and a callback runs.
#include <array>
#include <atomic>
#include <chrono>
#include <future>
#include <mutex>
#include <semaphore>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "runtime/src/api/c_abi.h"
#include "runtime/support/expect.h"
#include "runtime/support/thread_job.h"
#include "support/catch.h"

using namespace ddl::conformance;
using namespace std::chrono_literals;
using ddl::runtime::test::ThreadJob;

namespace {

ThreadJob job_of_end(int ranks, int hosts, double timeout_seconds = 20) {
  ThreadJob job;
  job.ranks = ranks;
  job.timeout_seconds = timeout_seconds;
  if (hosts > 1) job.hosts.resize(static_cast<std::size_t>(hosts));
  for (int rank = 0; rank < ranks && hosts > 1; ++rank)
    job.hosts[static_cast<std::size_t>(rank % hosts)].push_back(rank);
  return job;
}

/// A sum of the first count values.
ddl_handle* sum_of(ddl_context* context, const std::string& name, std::vector<float>& values,
                   std::size_t count, const ddl_async_options* options = nullptr) {
  ddl_handle* handle = nullptr;
  expect_ok(ddl_allreduce_async(context, name.c_str(), values.data(), values.data(), count, DDL_FLOAT32,
                                DDL_SUM, options, &handle),
            "allreduce_async");
  return handle;
}

/// Options whose callback fulfils the promise.
ddl_async_options calling_back(std::promise<ddl_status>& called) {
  ddl_async_options options = DDL_ASYNC_OPTIONS_INIT;
  options.argument = &called;
  options.completed = [](void* argument, ddl_status status, const char*) {
    static_cast<std::promise<ddl_status>*>(argument)->set_value(status);
  };
  return options;
}

void expect_called(std::promise<ddl_status>& called, const std::string& what) {
  auto future = called.get_future();
  expect(future.wait_for(5s) == std::future_status::ready, what + " was not called back");
  expect(future.get() == DDL_OK, what);
}

}  // namespace

TEST_CASE("a tensor that failed is not counted as a part of the batch that is expected") {
  job_of_end(2, GENERATE(1, 2)).run([&](ddl_context*& context) {
    const int rank = ddl_rank(context);
    std::vector<float> a(8), b(8);
    for (int step = 0; step < 3; ++step) {
      std::array<ddl_handle*, 2> handles{sum_of(context, "a", a, 4), sum_of(context, "b", b, 4)};
      expect_ok(ddl_wait_all(handles.data(), handles.size()), "a step");
    }
    // Each rank once submits what is expected, and the tensor fails.
    for (const int differs : {1, 0})
      expect_status(ddl_wait(sum_of(context, "a", a, rank == differs ? 5 : 4)), DDL_ERROR_MISMATCH,
                    "differs");
    b.assign(8, 1.0f);
    expect_ok(ddl_wait(sum_of(context, "b", b, 4)), "the other tensor alone");
    expect(b == std::vector<float>{2, 2, 2, 2, 1, 1, 1, 1}, "the sum, and nothing behind it");
  });
}

TEST_CASE("ranks that wait for tensors learn of an abort while they sleep") {
  job_of_end(2, GENERATE(1, 2)).run([&](ddl_context*& context) {
    const int rank = ddl_rank(context);
    std::vector<float> values(4);
    ddl_handle* const handle = sum_of(context, "of rank " + std::to_string(rank), values, 4);
    std::thread aborts;
    if (rank == 1) {
      aborts = std::thread([&] {
        std::this_thread::sleep_for(300ms);  // until they do not spin any more
        context->context->abort(3, "enough", false);
      });
    }
    const ddl_status status = ddl_wait(handle);
    const std::string error = ddl_last_error();
    if (aborts.joinable()) aborts.join();
    expect_status(status, DDL_ERROR_ABORTED, "wait");
    expect_contains(error, "enough");
  });
}

TEST_CASE("a rank that joins takes part in what the others submitted before they joined") {
  job_of_end(3, GENERATE(1, 2), 5).run([&](ddl_context*& context) {
    std::vector<float> values(4, 1.0f);
    // Two ranks never submit anything, and leave at once.
    ddl_handle* const handle = ddl_rank(context) == 1 ? sum_of(context, "x", values, 4) : nullptr;
    expect_ok(ddl_join(context, DDL_WORLD, nullptr), "join");
    if (handle == nullptr) return;
    expect_ok(ddl_wait(handle), "wait");
    expect(values[3] == 1.0f, "the sum of one");
  });
}

TEST_CASE("a rank that has joined gives zeros where the others ask for it") {
  job_of_end(3, GENERATE(1, 2, 3)).run([&](ddl_context*& context) {
    const int rank = ddl_rank(context);
    // Rank 0 has data for the first two steps.
    for (int step = 0; step < (rank == 0 ? 2 : 4); ++step) {
      const bool are_all = step < 2;
      ddl_async_options zeros = DDL_ASYNC_OPTIONS_INIT, none = DDL_ASYNC_OPTIONS_INIT;
      zeros.zeros_if_joined = 1;
      const auto values = [&](std::size_t count) {
        return std::vector<float>(count, static_cast<float>(rank + 2));
      };
      // The first two are executed together.
      auto mean = values(5), other_mean = values(300), least = values(5), product = values(5),
           own_least = values(5), all = values(9);
      std::vector<float> part(static_cast<std::size_t>(rank + 2));
      const std::array<std::uint64_t, 3> counts{2, 3, 4};
      std::array<ddl_handle*, 6> handles{};
      const auto submit = [&](std::size_t at, const char* name, std::vector<float>& tensor, ddl_op op,
                              const ddl_async_options& options) {
        expect_ok(ddl_allreduce_async(context, name, tensor.data(), tensor.data(), tensor.size(), DDL_FLOAT32,
                                      op, &options, &handles[at]),
                  name);
      };
      submit(0, "mean", mean, DDL_AVERAGE, zeros);
      submit(1, "other mean", other_mean, DDL_AVERAGE, zeros);
      submit(2, "least", least, DDL_MIN, zeros);
      submit(3, "product", product, DDL_PRODUCT, zeros);
      submit(4, "own least", own_least, DDL_MIN, none);
      expect_ok(ddl_reduce_scatter_async(context, "part", all.data(), part.data(), counts.data(), DDL_FLOAT32,
                                         DDL_AVERAGE, &zeros, &handles[5]),
                "part");
      expect_ok(ddl_wait_all(handles.data(), handles.size()), "wait_all");
      const float average = (are_all ? 9.0f : 7.0f) / 3;
      expect(mean == std::vector<float>(5, average), "mean");
      expect(other_mean == std::vector<float>(300, average), "other mean");
      expect(least == std::vector<float>(5, are_all ? 2.0f : 0.0f), "least");
      expect(product == std::vector<float>(5, are_all ? 24.0f : 0.0f), "product");
      expect(own_least == std::vector<float>(5, are_all ? 2.0f : 3.0f), "the least without zeros");
      expect(part == std::vector<float>(part.size(), average), "part");
    }
    expect_ok(ddl_join(context, DDL_WORLD, nullptr), "join");
    std::vector<float> values(4, 1.0f);
    ddl_async_options options = DDL_ASYNC_OPTIONS_INIT;
    options.zeros_if_joined = rank == 2 ? 1 : 0;
    expect_status(ddl_wait(sum_of(context, "x", values, 4, &options)), DDL_ERROR_MISMATCH,
                  "an option that differs");
    expect_contains(ddl_last_error(),
                    "rank 2 on host2 called allreduce(sum, float32, 4 elements, zeros if joined)");
  });
}

TEST_CASE("a rank that has joined changes nothing that the others combine by Adasum") {
  job_of_end(3, GENERATE(1, 2)).run([&](ddl_context*& context) {
    const int rank = ddl_rank(context);
    // (1, 0), (1, 1) and, of rank 2, which has data for the first step, (0, 0); and a tensor beside it.
    for (int step = 0; step < (rank == 2 ? 1 : 2); ++step) {
      std::vector<double> one{rank == 2 ? 0.0 : 1.0, rank == 1 ? 1.0 : 0.0}, other(31, 3.0);
      std::array<ddl_handle*, 2> handles{};
      const std::array<ddl_tensor, 2> tensors{
          {{"one", one.data(), one.data(), 2}, {"other", other.data(), other.data(), 31}}};
      ddl_async_options options = DDL_ASYNC_OPTIONS_INIT;
      options.zeros_if_joined = static_cast<std::uint64_t>(step);
      expect_ok(ddl_grouped_allreduce_async(context, tensors.data(), 2, DDL_FLOAT64, DDL_ADASUM, &options,
                                            handles.data()),
                "adasum");
      expect_ok(ddl_wait_all(handles.data(), handles.size()), "wait_all");
      expect(one == std::vector<double>{1.25, 0.75}, "one");
      expect(other == std::vector<double>(31, 3.0), "what all give alike");
    }
    expect_ok(ddl_join(context, DDL_WORLD, nullptr), "join");
  });
}

TEST_CASE("a tensor that asks for it fails while a rank has joined") {
  job_of_end(3, GENERATE(1, 2)).run([&](ddl_context*& context) {
    ddl_async_options all = DDL_ASYNC_OPTIONS_INIT;
    all.fails_if_joined = 1;
    // Rank 1 has data for the first step.
    for (int step = 0; step < (ddl_rank(context) == 1 ? 1 : 2); ++step) {
      std::vector<float> values(4, 1.0f);
      void* result = nullptr;
      std::array<ddl_handle*, 2> handles{};
      expect_ok(ddl_broadcast_async(context, "moved", values.data(), 4, DDL_FLOAT32, 0, &all, &handles[0]),
                "broadcast");
      expect_ok(ddl_allgatherv_async(context, "gathered", values.data(), 4, &result, nullptr, DDL_FLOAT32,
                                     &all, &handles[1]),
                "allgatherv");
      for (ddl_handle* const handle : handles) {
        expect_status(ddl_wait(handle), step == 0 ? DDL_OK : DDL_ERROR_MISMATCH, "wait");
        if (step == 1) expect_contains(ddl_last_error(), "needs all ranks, and rank 1 on host");
      }
      if (step == 0) expect_ok(ddl_free(context, result), "free");
    }
    expect_ok(ddl_join(context, DDL_WORLD, nullptr), "join");
  });
}

TEST_CASE("a rank that has joined makes no ordered calls of that process set, but of others") {
  std::promise<void> has_joined;
  job_of_end(2, GENERATE(1, 2)).run([&](ddl_context*& context) {
    std::uint64_t set = 0;
    expect_ok(ddl_process_set_split(context, DDL_WORLD, 0, 0, &set), "split");
    ddl_call_options in_set = DDL_CALL_OPTIONS_INIT;
    in_set.process_set = set;
    if (ddl_rank(context) == 1) {
      // Only with a rank that has joined can a tensor of the other one be executed.
      std::vector<float> values(4, 1.0f);
      expect_ok(ddl_wait(sum_of(context, "x", values, 4)), "wait");
      has_joined.set_value();
      expect_ok(ddl_barrier(context, &in_set), "a barrier of the other set");
      expect_ok(ddl_join(context, DDL_WORLD, nullptr), "join");
    } else {
      auto joined =
          std::async(std::launch::async, [&] { return ddl_join(context, DDL_WORLD, nullptr) == DDL_OK; });
      expect(has_joined.get_future().wait_for(10s) == std::future_status::ready, "join");
      std::int32_t value = 1;
      std::uint64_t made = 0;
      const std::string why =
          "this rank has joined (ddl_join): it makes no ordered calls of this process set";
      expect_status(ddl_allreduce(context, &value, &value, 1, DDL_INT32, DDL_SUM, nullptr),
                    DDL_ERROR_INVALID_ARGUMENT, "an ordered call");
      expect_contains(ddl_last_error(), why);
      expect_status(ddl_send(context, &value, 1, DDL_INT32, 1, nullptr), DDL_ERROR_INVALID_ARGUMENT, "send");
      expect_status(ddl_process_set_split(context, DDL_WORLD, 0, 0, &made), DDL_ERROR_INVALID_ARGUMENT,
                    "split");
      expect_status(ddl_join(context, DDL_WORLD, nullptr), DDL_ERROR_BUSY, "a second join");
      expect_ok(ddl_barrier(context, &in_set), "a barrier of the other set");
      expect(joined.get(), "the join");
    }
    expect_ok(ddl_barrier(context, nullptr), "an ordered call after the join");
  });
}

TEST_CASE("a thread that joins learns of its own join, though another thread of its rank has joined again") {
  job_of_end(2, GENERATE(1, 2)).run([&](ddl_context*& context) {
    std::vector<float> value(1, 1.0f);
    std::int32_t first = -1, second = -1;
    const auto expect_sum_of_one = [&](const std::string& name) {
      expect_ok(ddl_wait(sum_of(context, name, value, 1)), name);
      expect(value[0] == 1.0f, "a sum of one rank shows that the other one has joined");
    };
    if (ddl_rank(context) == 1) {
      expect_ok(ddl_join(context, DDL_WORLD, &first), "the first join");
      expect_sum_of_one("z");
      expect_ok(ddl_join(context, DDL_WORLD, &second), "the second join");
    } else {
      expect_sum_of_one("u");
      struct Chain {
        ddl_context* context;
        std::int32_t& last;
        std::vector<float> v{1}, x{1}, t{1}, y{1};
        ddl_handle *of_x = nullptr, *of_t = nullptr, *of_y = nullptr;
        std::promise<void> begun;
        std::future<ddl_status> joins;
        ddl_async_options options = DDL_ASYNC_OPTIONS_INIT;

        /// name is open, so a tensor of that name is refused for that, and then because this rank has joined.
        void wait_for_join(const char* name) {
          const auto deadline = std::chrono::steady_clock::now() + 10s;
          do {
            ddl_handle* none = nullptr;
            (void)ddl_allreduce_async(context, name, v.data(), v.data(), 1, DDL_FLOAT32, DDL_SUM, nullptr,
                                      &none);
          } while (std::string(ddl_last_error()).find("this rank has joined") == std::string::npos &&
                   std::chrono::steady_clock::now() < deadline);
        }
      } chain{context, second, {1}, {1}, {1}, {1}, nullptr, nullptr, nullptr, {}, {}, DDL_ASYNC_OPTIONS_INIT};
      chain.options.argument = &chain;
      // Both have joined when x is complete, but the first thread stays for t: until a further thread joins.
      chain.options.completed = [](void* argument, ddl_status, const char*) {
        auto& of = *static_cast<Chain*>(argument);
        of.of_y = sum_of(of.context, "y", of.y, 1);
        of.joins = std::async(std::launch::async, [&] { return ddl_join(of.context, DDL_WORLD, &of.last); });
        of.wait_for_join("y");
      };
      // The callback of v holds back what the engine does next, so that x is announced together with the join.
      ddl_async_options begins = DDL_ASYNC_OPTIONS_INIT;
      begins.argument = &chain;
      begins.completed = [](void* argument, ddl_status, const char*) {
        auto& of = *static_cast<Chain*>(argument);
        of.of_x = sum_of(of.context, "x", of.x, 1, &of.options);
        expect_ok(ddl_allreduce_async(of.context, "t", of.t.data(), of.t.data(), 1, DDL_FLOAT32, DDL_MAX,
                                      nullptr, &of.of_t),
                  "t");
        of.begun.set_value();
        of.wait_for_join("x");
      };
      ddl_handle* const of_v = sum_of(context, "v", chain.v, 1, &begins);
      expect(chain.begun.get_future().wait_for(10s) == std::future_status::ready, "v is not called back");
      expect_ok(ddl_join(context, DDL_WORLD, &first), "the first join");
      for (ddl_handle* const handle : {of_v, chain.of_x, chain.of_t}) expect_ok(ddl_wait(handle), "a tensor");
      expect(chain.joins.get() == DDL_OK, "the second join");
      expect_ok(ddl_wait(chain.of_y), "y");
    }
    expect(first == 0, "the first join ended with rank " + std::to_string(first));
    expect(second == 1, "the second join ended with rank " + std::to_string(second));
  });
}

TEST_CASE("a tensor that a rank submits after it had joined is another one than that of the others") {
  job_of_end(3, GENERATE(1, 2), 5).run([&](ddl_context*& context) {
    const int rank = ddl_rank(context);
    // The callback of the first tensor of rank 1, and of the second one of rank 2, submit another one.
    struct Chain {
      ddl_context* context;
      int rank;
      std::vector<float> a{1}, z{1};
      ddl_handle *of_a = nullptr, *of_z = nullptr;
      std::binary_semaphore handed_over{0};
    } chain{context, rank};
    const auto submit_z = [](void* argument, ddl_status, const char*) {
      auto& of = *static_cast<Chain*>(argument);
      of.of_z = sum_of(of.context, "z", of.z, 1);
    };
    ddl_async_options first_options = DDL_ASYNC_OPTIONS_INIT, options = DDL_ASYNC_OPTIONS_INIT;
    first_options.argument = options.argument = &chain;
    if (rank == 2) options.completed = submit_z;
    if (rank == 1) {
      // All ranks have joined when what it submits is ready: it keeps the engine longer than that takes.
      first_options.completed = [](void* argument, ddl_status, const char*) {
        auto& of = *static_cast<Chain*>(argument);
        of.of_a = sum_of(of.context, "a", of.a, 1);
        of.of_z = sum_of(of.context, "z", of.z, 1);
        of.handed_over.release();
        std::this_thread::sleep_for(300ms);
      };
    }
    std::vector<float> first(1);
    ddl_handle* const of_first = sum_of(context, "first", first, 1, &first_options);
    if (rank == 1) {
      expect(chain.handed_over.try_acquire_for(10s), "the first tensor was not called back");
    } else {
      expect_ok(ddl_wait(of_first), "first");
      chain.of_a = sum_of(context, "a", chain.a, 1, &options);
      if (rank == 0) chain.of_z = sum_of(context, "z", chain.z, 1);
    }
    expect_ok(ddl_join(context, DDL_WORLD, nullptr), "join");
    if (rank == 1) expect_ok(ddl_wait(of_first), "first");
    expect_ok(ddl_wait(chain.of_a), "a");
    expect(chain.a[0] == 3.0f, "the sum of all");
    if (rank != 2) {
      expect_ok(ddl_wait(chain.of_z), "z");
      expect(chain.z[0] == 2.0f, "the sum of two");
      chain.of_z = sum_of(context, "z", chain.z, 1);
    }
    expect_ok(ddl_wait(chain.of_z), "z again");
    expect(chain.z[0] == 5.0f, "the sum of all again");
  });
}

TEST_CASE("a timeout names the rank that submits nothing, also before the hosts are connected") {
  ThreadJob job = job_of_end(3, 2, 1.0);
  const bool is_first = GENERATE(true, false);
  std::counting_semaphore<> timed_out{0};
  job.run([&](ddl_context*& context) {
    std::vector<float> values(4);
    if (!is_first) expect_ok(ddl_wait(sum_of(context, "first", values, 4)), "first");
    if (ddl_rank(context) == 1) {
      for (int i = 0; i < 2; ++i) expect(timed_out.try_acquire_for(10s), "the others did not time out");
      return;
    }
    const ddl_status status = ddl_wait(sum_of(context, "x", values, 4));
    const std::string error = ddl_last_error();
    timed_out.release();
    expect_status(status, DDL_ERROR_TIMEOUT, "wait");
    // Before the hosts are connected, nobody knows the host of rank 1.
    expect_contains(error, is_first ? "not connected in time: rank 1" : "not arrived: rank 1 on host1");
    expect(error.find("not arrived: rank 0") == std::string::npos, error);
  });
}

TEST_CASE("a process set is not freed while a thread waits for a tensor of it") {
  job_of_end(2, GENERATE(1, 2)).run([&](ddl_context*& context) {
    std::uint64_t set = 0;
    expect_ok(ddl_process_set_split(context, DDL_WORLD, 0, 0, &set), "split");
    ddl_async_options options = DDL_ASYNC_OPTIONS_INIT;
    options.process_set = set;
    std::vector<float> first(4), values(4);
    expect_ok(ddl_wait(sum_of(context, "first", first, 4, &options)), "the first");
    const auto wait = [&] { expect_ok(ddl_wait(sum_of(context, "x", values, 4, &options)), "wait"); };
    if (ddl_rank(context) == 0) {
      auto waits = std::async(std::launch::async, wait);
      std::this_thread::sleep_for(100ms);  // nothing shows from outside that it waits
      expect_status(ddl_process_set_free(context, set), DDL_ERROR_BUSY, "free");
      expect_ok(ddl_barrier(context, nullptr), "barrier");
      waits.get();
    } else {
      expect_ok(ddl_barrier(context, nullptr), "barrier");
      wait();
    }
    expect_ok(ddl_process_set_free(context, set), "free");
  });
}

TEST_CASE("a process set that is freed with an open tensor leaves the others as they are") {
  // What the ranks have open: one of them, or all, and whether they are waiting for each other in a call.
  const bool has_group = GENERATE(false, true), are_all = GENERATE(false, true);
  job_of_end(3, GENERATE(1, 2)).run([&](ddl_context*& context) {
    std::uint64_t set = 0;
    expect_ok(ddl_process_set_split(context, DDL_WORLD, 0, 0, &set), "split");
    ddl_async_options options = DDL_ASYNC_OPTIONS_INIT, grouped = DDL_ASYNC_OPTIONS_INIT;
    options.process_set = grouped.process_set = set;
    grouped.group = has_group ? "group" : nullptr;
    grouped.group_size = 2;
    std::vector<float> first(4, 1.0f), values(4, 1.0f), other(4, 1.0f);
    expect_ok(ddl_wait(sum_of(context, "first", first, 4, &options)), "the first");
    const int rank = ddl_rank(context);
    ddl_handle* handle = nullptr;
    // Of a group, or of this rank alone: it is never complete.
    if (rank == 0 || are_all)
      handle = sum_of(context, has_group ? "x" : "x of " + std::to_string(rank), values, 4, &grouped);
    // The engine's own threads have begun what they can.
    ddl_handle* const of_world = sum_of(context, "y", other, 4);
    expect_ok(ddl_wait(of_world), "another set");
    expect_ok(ddl_process_set_free(context, set), "free");
    expect_ok(ddl_barrier(context, nullptr), "the world");
    if (handle != nullptr) {
      const ddl_status status = ddl_wait(handle);
      // Another rank may have left before this one.
      expect(status == DDL_ERROR_ABORTED || status == DDL_ERROR_PEER_LOST,
             std::string("the open tensor: ") + ddl_status_name(status) + ": " + ddl_last_error());
    }
    expect_ok(ddl_wait(sum_of(context, "y", other, 4)), "named tensors of the world");
    expect(other[0] == 9.0f, "the sum");
  });
}

TEST_CASE("a rank leaves although the others have submitted nothing yet") {
  std::promise<void> left;
  job_of_end(2, GENERATE(1, 2)).run([&](ddl_context*& context) {
    if (ddl_rank(context) == 0) {
      expect(left.get_future().wait_for(10s) == std::future_status::ready, "the other rank did not leave");
      return;
    }
    std::vector<float> values(4);
    ddl_handle* const handle = sum_of(context, "x", values, 4);
    std::this_thread::sleep_for(100ms);  // the engine announces it meanwhile
    expect_ok(ddl_finalize(context), "finalize");
    context = nullptr;
    left.set_value();
    expect_status(ddl_wait(handle), DDL_ERROR_ABORTED, "wait");
  });
}

TEST_CASE("a tensor that waits for the rest of its batch is executed though nothing else happens") {
  job_of_end(2, GENERATE(1, 2)).run([&](ddl_context*& context) {
    std::vector<float> a(4), b(4), first(4), second(4);
    for (int step = 0; step < 3; ++step) {
      std::array<ddl_handle*, 2> handles{sum_of(context, "a", a, 4), sum_of(context, "b", b, 4)};
      expect_ok(ddl_wait_all(handles.data(), handles.size()), "a step");
    }
    std::promise<ddl_status> called;
    ddl_async_options options = calling_back(called), grouped = DDL_ASYNC_OPTIONS_INIT;
    grouped.group = "group";
    grouped.group_size = 2;
    // The engine has a tensor to wait for, and announces it meanwhile.
    ddl_handle* const open = sum_of(context, "first", first, 4, &grouped);
    std::this_thread::sleep_for(100ms);
    ddl_handle* const handle = sum_of(context, "a", a, 4, &options);
    expect_called(called, "a");
    expect_ok(ddl_wait(handle), "wait");
    ddl_handle* const other = sum_of(context, "second", second, 4, &grouped);
    expect_ok(ddl_wait(other), "second");
    expect_ok(ddl_wait(open), "first");
  });
}

TEST_CASE("a tensor that nobody waits for is executed, also if all before it were waited for at once") {
  job_of_end(2, GENERATE(1, 2)).run([&](ddl_context*& context) {
    for (int round = 0; round < 3; ++round) {
      std::vector<float> loss(1);
      for (int i = 0; i < 40; ++i) expect_ok(ddl_wait(sum_of(context, "loss", loss, 1)), "wait");
      std::promise<ddl_status> called;
      ddl_async_options options = calling_back(called);
      ddl_handle* const handle = sum_of(context, "loss", loss, 1, &options);
      expect_called(called, "loss");
      expect_ok(ddl_wait(handle), "wait");
    }
  });
}

TEST_CASE("a tensor's callback has returned when the thread that waits for it goes on") {
  job_of_end(2, 1).run([&](ddl_context*& context) {
    for (int step = 0; step < 5; ++step) {
      std::vector<float> values(4);
      std::atomic<bool> has_returned{false};
      ddl_async_options options = DDL_ASYNC_OPTIONS_INIT;
      options.argument = &has_returned;
      options.completed = [](void* argument, ddl_status, const char*) {
        std::this_thread::sleep_for(50ms);  // a callback that takes its time
        *static_cast<std::atomic<bool>*>(argument) = true;
      };
      // Rank 1 comes late, so the engine's own thread of rank 0 drives.
      if (ddl_rank(context) == 1) std::this_thread::sleep_for(100ms);
      ddl_handle* const handle = sum_of(context, "x", values, 4, &options);
      std::this_thread::sleep_for(20ms);
      expect_ok(ddl_wait(handle), "wait");
      expect(has_returned, "wait returned before the callback");
    }
  });
}

TEST_CASE("an exception while tensors are executed ends the set on all ranks, and no process") {
  job_of_end(3, GENERATE(1, 2)).run([&](ddl_context*& context) {
    const int rank = ddl_rank(context);
    ddl_async_options options = DDL_ASYNC_OPTIONS_INIT;
    std::vector<float> values(4), open(4);
    std::promise<ddl_status> called;
    ddl_async_options waits = calling_back(called);
    waits.group = "group";
    waits.group_size = 2;
    // A tensor that is never complete, and nobody waits for it.
    expect_ok(ddl_allreduce_async(context, "open", open.data(), open.data(), 4, DDL_FLOAT32, DDL_SUM, &waits,
                                  nullptr),
              "open");
    options.completed = [](void*, ddl_status, const char*) { throw std::runtime_error("a defect"); };
    const ddl_status x = ddl_wait(sum_of(context, "x", values, 4, rank == 1 ? &options : nullptr));
    // Another rank may still be in the call when rank 1, which has completed it, gives up.
    expect(x == DDL_OK || (rank != 1 && x == DDL_ERROR_ABORTED), "x: " + std::to_string(x));
    auto future = called.get_future();
    expect(future.wait_for(5s) == std::future_status::ready, "a tensor that was open has no error");
    expect(future.get() == (rank == 1 ? DDL_ERROR_INTERNAL : DDL_ERROR_ABORTED), "its status");
    expect_status(ddl_barrier(context, nullptr), DDL_ERROR_ABORTED, "an ordered call");
    expect_contains(ddl_last_error(), "rank 1 on host1 (pid ");
    expect_contains(ddl_last_error(), "cannot go on");
    expect_contains(ddl_last_error(), ": a defect");
  });
}

#ifndef DDL_TEST_SANITIZED  // A sanitizer ends the process if more memory is wanted than there is.
TEST_CASE("a rank that has joined and lacks the memory for the others' tensor tells them") {
  job_of_end(2, GENERATE(1, 2)).run([&](ddl_context*& context) {
    if (ddl_rank(context) == 1) {
      expect_status(ddl_join(context, DDL_WORLD, nullptr), DDL_ERROR_SYSTEM, "join");
      expect_contains(ddl_last_error(), "out of memory");
      return;
    }
    std::vector<std::byte> some(std::size_t{1} << 20);
    ddl_handle* handle = nullptr;
    // What is behind the buffer is never accessed: the other rank does not come.
    expect_ok(ddl_broadcast_async(context, "huge", some.data(), std::uint64_t{1} << 50, DDL_UINT8, 0, nullptr,
                                  &handle),
              "broadcast");
    expect_status(ddl_wait(handle), DDL_ERROR_ABORTED, "wait");
    expect_contains(ddl_last_error(), "rank 1 on host1 (pid ");
    expect_contains(ddl_last_error(), "cannot go on");
    expect_contains(ddl_last_error(), "out of memory");
  });
}
#endif

TEST_CASE("a callback cannot finalize") {
  job_of_end(2, 1).run([&](ddl_context*& context) {
    struct Result {
      ddl_context* context;
      std::promise<ddl_status> finalized;
    } result{context, {}};
    std::vector<float> values(4);
    ddl_async_options options = DDL_ASYNC_OPTIONS_INIT;
    options.argument = &result;
    options.completed = [](void* argument, ddl_status, const char*) {
      auto& of = *static_cast<Result*>(argument);
      of.finalized.set_value(ddl_finalize(of.context));
    };
    expect_ok(ddl_allreduce_async(context, "x", values.data(), values.data(), 4, DDL_FLOAT32, DDL_SUM,
                                  &options, nullptr),
              "allreduce_async");
    auto finalized = result.finalized.get_future();
    expect(finalized.wait_for(5s) == std::future_status::ready, "finalize does not return");
    expect(finalized.get() == DDL_ERROR_BUSY, "finalize in a callback");
  });
}

TEST_CASE("a rank that leaves while a callback runs does not end the others' context") {
  struct Call {
    std::promise<void> begun, other_has_failed;
    std::atomic<bool> has_ended{false};
  };
  for (const int hosts : {1, 2}) {
    Call call;
    job_of_end(2, hosts).run([&](ddl_context*& context) {
      std::vector<float> values(4, 1.0f), more(4);
      if (ddl_rank(context) == 1) {
        expect_ok(ddl_wait(sum_of(context, "x", values, 4)), "wait");
        // It needs the other rank, which has left when its callback has returned, and not before.
        expect_status(ddl_wait(sum_of(context, "more", more, 4)), DDL_ERROR_PEER_LOST,
                      "a tensor without the leaver");
        const bool is_in_time = call.has_ended;
        call.other_has_failed.set_value();
        return expect(is_in_time, "the other rank's tensor failed while the callback ran");
      }
      ddl_async_options options = DDL_ASYNC_OPTIONS_INIT;
      options.argument = &call;
      options.completed = [](void* argument, ddl_status, const char*) {
        auto& one = *static_cast<Call*>(argument);
        one.begun.set_value();
        (void)one.other_has_failed.get_future().wait_for(200ms);
        one.has_ended = true;
      };
      expect_ok(ddl_allreduce_async(context, "x", values.data(), values.data(), 4, DDL_FLOAT32, DDL_SUM,
                                    &options, nullptr),
                "allreduce_async");
      call.begun.get_future().wait();
      expect_ok(ddl_finalize(context), "finalize");
      context = nullptr;
      expect(call.has_ended, "finalize returned before the callback");
    });
  }
}

TEST_CASE("a callback may test a tensor, but not wait or join") {
  job_of_end(2, GENERATE(1, 2)).run([&](ddl_context*& context) {
    struct Call {
      ddl_context* context;
      ddl_handle* other;
      std::promise<std::string> said;
    } call{context, nullptr, {}};
    std::vector<float> first(4, 1.0f), second(4, 1.0f);
    // Complete only when the ranks have the second tensor, which the callback still sees open.
    ddl_async_options options = DDL_ASYNC_OPTIONS_INIT;
    options.argument = &call;
    options.completed = [](void* argument, ddl_status, const char*) {
      auto& one = *static_cast<Call*>(argument);
      std::int32_t done = 1;
      std::string said = ddl_test(one.other, &done) == DDL_OK && done == 0 ? "open" : "not open";
      if (ddl_join(one.context, DDL_WORLD, nullptr) == DDL_ERROR_INVALID_ARGUMENT) said += ", no join";
      if (ddl_wait(one.other) == DDL_ERROR_INVALID_ARGUMENT) said += ", no wait";
      one.said.set_value(said);
    };
    call.other = sum_of(context, "of rank " + std::to_string(ddl_rank(context)), second, 4);
    expect_ok(ddl_allreduce_async(context, "x", first.data(), first.data(), 4, DDL_FLOAT32, DDL_SUM, &options,
                                  nullptr),
              "allreduce_async");
    auto said = call.said.get_future();
    expect(said.wait_for(5s) == std::future_status::ready, "not called back");
    expect(said.get() == "open, no join, no wait", "what the callback may do");
  });
}

TEST_CASE("a shape that does not fit is refused, and a group that is refused leaves no handles") {
  ThreadJob job;
  job.run([&](ddl_context*& context) {
    float value = 1;
    const std::array<std::uint64_t, 2> wrong{2, 3}, huge{std::uint64_t{1} << 33, std::uint64_t{1} << 33};
    for (const auto& shape : {wrong, huge}) {
      ddl_async_options options = DDL_ASYNC_OPTIONS_INIT;
      options.shape = shape.data();
      options.dimensions = shape.size();
      ddl_handle* handle = nullptr;
      expect_status(
          ddl_allreduce_async(context, "x", &value, &value, 1, DDL_FLOAT32, DDL_SUM, &options, &handle),
          DDL_ERROR_INVALID_ARGUMENT, "shape");
      expect_contains(ddl_last_error(), "shape does not have 1 element");
    }
    int nothing = 0;
    auto* const garbage = reinterpret_cast<ddl_handle*>(&nothing);
    std::array<ddl_handle*, 2> handles{garbage, garbage};
    const std::array<ddl_tensor, 2> tensors{{{"a", &value, &value, 1}, {"", &value, &value, 1}}};
    expect_status(ddl_grouped_allreduce_async(context, tensors.data(), tensors.size(), DDL_FLOAT32, DDL_SUM,
                                              nullptr, handles.data()),
                  DDL_ERROR_INVALID_ARGUMENT, "a name that is empty");
    expect(handles[0] == nullptr && handles[1] == nullptr, "handles");
  });
}

TEST_CASE("in a step that is expected, a ready tensor of a higher priority goes first") {
  struct Order {
    std::mutex mutex;
    std::string text;
  };
  job_of_end(2, GENERATE(1, 2)).run([&](ddl_context*& context) {
    std::vector<float> low(4, 1.0f), high(4, 1.0f);
    struct Call {
      Order* order;
      char letter;
    };
    const auto submit = [&](const char* name, std::vector<float>& values, int priority, Call& call) {
      ddl_async_options options = DDL_ASYNC_OPTIONS_INIT;
      options.priority = priority;
      options.argument = &call;
      options.completed = [](void* argument, ddl_status, const char*) {
        const Call& one = *static_cast<Call*>(argument);
        const std::lock_guard lock(one.order->mutex);
        one.order->text += one.letter;
      };
      ddl_handle* handle = nullptr;
      expect_ok(ddl_allreduce_async(context, name, values.data(), values.data(), 4, DDL_FLOAT32, DDL_SUM,
                                    &options, &handle),
                name);
      return handle;
    };
    for (int step = 0; step < 5; ++step) {
      Order order;
      Call of_low{&order, 'l'}, of_high{&order, 'h'};
      if (step < 3) {
        expect_ok(ddl_wait(submit("low", low, 0, of_low)), "low");
        expect_ok(ddl_wait(submit("high", high, 1, of_high)), "high");
        continue;
      }
      // One rank enters what is expected next; the other one has the other tensor first.
      const bool begins_with_low = ddl_rank(context) == 0;
      std::array<ddl_handle*, 2> handles{};
      handles[0] = begins_with_low ? submit("low", low, 0, of_low) : submit("high", high, 1, of_high);
      if (begins_with_low) handles[1] = submit("high", high, 1, of_high);
      expect_ok(ddl_barrier(context, nullptr), "barrier");
      if (!begins_with_low) handles[1] = submit("low", low, 0, of_low);
      expect_ok(ddl_wait_all(handles.data(), handles.size()), "wait_all");
      expect(order.text == "hl", "the order was " + order.text);
    }
  });
}
