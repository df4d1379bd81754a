// What only calls by NCCL or RCCL have, over the stand-in for the library: the host goes on, calls are compared beside the
// data, several communicators keep one order, and nobody hangs.
#include <array>
#include <atomic>
#include <bit>
#include <cstdlib>
#include <future>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "runtime/support/expect.h"
#include "runtime/support/on_gpu.h"
#include "runtime/support/thread_job.h"
#include "support/catch.h"
#include "support/gpu_vendor.h"

namespace {

using ddl::conformance::expect;
using ddl::conformance::expect_contains;
using ddl::conformance::expect_ok;
using ddl::conformance::expect_status;
using ddl::contract::GpuOperations;
using ddl::runtime::test::Floats;
using ddl::runtime::test::Gate;
using ddl::runtime::test::OnGpu;
using ddl::runtime::test::sum;
using ddl::runtime::test::TestGpu;
using ddl::runtime::test::ThreadJob;
using ddl::test::is_hip;

/// Each rank has a GPU of its own, and a call that does not go by NCCL fails.
ThreadJob job_of(int ranks) {
  ThreadJob job;
  job.ranks = ranks;
  job.gpu_operations = GpuOperations::kNccl;
  return job;
}

void leave(ddl_context*& context) {
  ddl_finalize(context);
  context = nullptr;
}

/// A variable of the environment, until the end of the scope.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) { ::setenv(name, value, 1); }
  ~Variable() { ::unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
};

}  // namespace

TEST_CASE("a call by NCCL returns before its stream has come so far, and before the other ranks call") {
  Gate gate;
  std::promise<void> has_returned;
  job_of(2).run([&](ddl_context*& context) {
    const OnGpu on(context);
    Floats floats(on, std::vector<float>(1000, 1.0f));
    expect_ok(sum(context, floats, on), "the first call, which makes the communicator");
    if (ddl_rank(context) == 0) {
      gate.hold(on.stream());
      for (int i = 0; i < 3; ++i) expect_ok(sum(context, floats, on), "a call on a stream that is held");
      has_returned.set_value();
      gate.open();
    } else {
      has_returned.get_future().wait();
      for (int i = 0; i < 3; ++i) expect_ok(sum(context, floats, on), "a later call");
    }
    for (const float value : floats.values()) expect(value == 16.0f, "a wrong sum");
  });
}

namespace {

/// Ones in one of the formats of 8-bit floats, four in each float of a buffer.
struct Ones8 {
  ddl_dtype dtype;
  std::uint32_t ones, twos;

  std::vector<float> buffer(std::size_t count) const {
    return std::vector<float>(count, std::bit_cast<float>(ones));
  }
  void check_twos(Floats& floats) const {
    for (const float value : floats.values())
      expect(std::bit_cast<std::uint32_t>(value) == twos, "a wrong sum of 8-bit floats");
  }
};
constexpr Ones8 kOcp{DDL_FLOAT8_E4M3FN, 0x38383838, 0x40404040};
constexpr Ones8 kFnuz{DDL_FLOAT8_E4M3FNUZ, 0x40404040, 0x48484848};

ddl_status sum8(ddl_context* context, const Ones8& format, Floats& floats, const OnGpu& on) {
  return ddl_allreduce(context, floats.data(), floats.data(), 4 * floats.size(), format.dtype, DDL_SUM,
                       &on.options);
}

}  // namespace

TEST_CASE("8-bit floats are combined by NCCL where the GPUs have them") {
  const Ones8 format = is_hip() ? kFnuz : kOcp;
  Gate gate;
  std::promise<void> has_returned;
  job_of(2).run([&](ddl_context*& context) {
    const OnGpu on(context);
    Floats other(on, {1.0f}), floats(on, format.buffer(100));
    expect_ok(sum(context, other, on), "the first call, which makes the communicator");
    if (ddl_rank(context) == 0) {
      // A call through CPU memory would wait.
      gate.hold(on.stream());
      expect_ok(sum8(context, format, floats, on), "a call on a stream that is held");
      has_returned.set_value();
      gate.open();
    } else {
      has_returned.get_future().wait();
      expect_ok(sum8(context, format, floats, on), "a later call");
    }
    format.check_twos(floats);
    ddl_call_options options = on.options;
    options.prescale = 2;
    options.postscale = 0.5;
    expect_ok(ddl_allreduce(context, floats.data(), floats.data(), 4 * floats.size(), format.dtype,
                            DDL_AVERAGE, &options),
              "an average with factors");
    format.check_twos(floats);
  });
}

TEST_CASE("8-bit floats that a GPU does not combine go through CPU memory") {
  std::optional<Variable> variable;
  Ones8 format = is_hip() ? kFnuz : kOcp;
  SECTION("an old GPU") { variable.emplace("DDL_STAND_IN_CAPABILITY", "80"); }
  SECTION("formats of another vendor") { format = is_hip() ? kOcp : kFnuz; }
  job_of(2).run([&](ddl_context*& context) {
    const OnGpu on(context);
    Floats floats(on, format.buffer(100));
    expect_ok(sum8(context, format, floats, on), "a sum");
    format.check_twos(floats);
    // A move needs no format.
    expect_ok(ddl_broadcast(context, floats.data(), 4 * floats.size(), format.dtype, 0, &on.options),
              "a broadcast");
    format.check_twos(floats);
  });
}

TEST_CASE("ranks that share a GPU use NCCL only if they are forced to, and then are told why they cannot") {
  const bool is_forced = GENERATE(false, true);
  ThreadJob job;
  job.ranks = 3;
  job.gpu_operations = is_forced ? GpuOperations::kNccl : GpuOperations::kAuto;
  job.run([&](ddl_context*& context) {
    const OnGpu on(ddl_rank(context) / 2);
    Floats floats(on, std::vector<float>(10, 1.0f));
    for (int round = 0; round < 2; ++round) {
      const ddl_status status = sum(context, floats, on);
      if (is_forced) {
        expect_status(status, DDL_ERROR_UNSUPPORTED, "two ranks on one GPU");
        expect_contains(ddl_last_error(), "rank 0 on host0 and rank 1 on host1 share ");
        expect_contains(ddl_last_error(), "DDL_GPU_OPERATIONS=nccl");
      } else {
        expect_ok(status, "through CPU memory");
      }
    }
    if (!is_forced) {
      for (const float value : floats.values()) expect(value == 9.0f, "a wrong sum");
    }
  });
}

TEST_CASE("different calls are found beside the data, and end the set") {
  job_of(3).run([](ddl_context*& context) {
    const OnGpu on(context);
    Floats floats(on, std::vector<float>(1000, 1.0f));
    expect_ok(sum(context, floats, on), "the first call");
    const std::uint64_t count = ddl_rank(context) == 2 ? 999 : 1000;
    // The comparison may end before the call has been put on the GPU.
    ddl_status status =
        ddl_allreduce(context, floats.data(), floats.data(), count, DDL_FLOAT32, DDL_SUM, &on.options);
    // The stream does not hang.
    (void)floats.values();
    if (status == DDL_OK) status = sum(context, floats, on);
    expect_status(status, DDL_ERROR_MISMATCH, "a mismatch");
    expect_contains(ddl_last_error(), "999 elements");
    expect_contains(ddl_last_error(), "rank 2 on host2");
    expect_status(sum(context, floats, on), DDL_ERROR_ABORTED, "a later call");
    leave(context);
  });
}

TEST_CASE("different calls are found before data move if the ranks agree first") {
  ThreadJob job = job_of(2);
  job.agrees_first = true;
  job.run([](ddl_context*& context) {
    const OnGpu on(context);
    Floats floats(on, std::vector<float>(10, 1.0f));
    const std::uint64_t count = ddl_rank(context) == 1 ? 9 : 10;
    for (int round = 0; round < 2; ++round) {
      expect_status(
          ddl_allreduce(context, floats.data(), floats.data(), count, DDL_FLOAT32, DDL_SUM, &on.options),
          DDL_ERROR_MISMATCH, "a mismatch");
      expect_ok(sum(context, floats, on), "the set goes on");
    }
    for (const float value : floats.values()) expect(value == 4.0f, "a wrong sum");
  });
}

TEST_CASE("a rank that does not call is named after the timeout, and the streams of the others go on") {
  std::promise<void> has_failed;
  job_of(2).run([&](ddl_context*& context) {
    OnGpu on(context);
    Floats floats(on, std::vector<float>(10, 1.0f));
    expect_ok(sum(context, floats, on), "the first call");
    if (ddl_rank(context) == 0) {
      on.options.timeout_seconds = 0.3;
      expect_ok(sum(context, floats, on), "a call that rank 1 does not make");
      (void)floats.values();
      expect_status(sum(context, floats, on), DDL_ERROR_TIMEOUT, "the next call");
      expect_contains(ddl_last_error(), "rank 1 on host1");
      has_failed.set_value();
    } else {
      has_failed.get_future().wait();
    }
    leave(context);
  });
}

TEST_CASE("a job that is aborted ends what is on the GPUs") {
  std::promise<void> rank_0_is_ready, rank_2_is_ready;
  job_of(3).run([&](ddl_context*& context) {
    const OnGpu on(context);
    Floats floats(on, std::vector<float>(10, 1.0f));
    expect_ok(sum(context, floats, on), "the first call");
    if (ddl_rank(context) != 1) (ddl_rank(context) == 0 ? rank_0_is_ready : rank_2_is_ready).set_value();
    if (ddl_rank(context) == 1) {
      rank_0_is_ready.get_future().wait();
      rank_2_is_ready.get_future().wait();
      expect_ok(ddl_abort(context, 3, "enough"), "abort");
    } else {
      const ddl_status status = sum(context, floats, on);
      expect(status == DDL_OK || status == DDL_ERROR_ABORTED, "the call");
      (void)floats.values();
      expect_status(sum(context, floats, on), DDL_ERROR_ABORTED, "the next call");
      expect_contains(ddl_last_error(), status == DDL_OK ? "enough" : "rank 1 on ");
    }
    leave(context);
  });
}

TEST_CASE("a communicator that cannot be made is an error on all ranks, with what to do") {
  const Variable error("DDL_STAND_IN_NCCL_ERROR", "init");
  job_of(2).run([](ddl_context*& context) {
    const OnGpu on(context);
    Floats floats(on, std::vector<float>(10, 1.0f));
    expect(sum(context, floats, on) != DDL_OK, "the call succeeded");
    expect_contains(ddl_last_error(), "ncclCommInitRankConfig: unhandled system error");
    expect_contains(ddl_last_error(), "DDL_GPU_OPERATIONS=staged");
    leave(context);
  });
}

TEST_CASE("an error between the GPUs ends the calls and is told") {
  const Variable error("DDL_STAND_IN_NCCL_ERROR", "call");
  job_of(2).run([](ddl_context*& context) {
    const OnGpu on(context);
    Floats floats(on, std::vector<float>(10, 1.0f));
    ddl_status status = DDL_OK;
    for (int i = 0; status == DDL_OK && i < 100; ++i) {
      status = sum(context, floats, on);
      (void)floats.values();
    }
    expect(status != DDL_OK, "no call failed");
    expect_contains(ddl_last_error(), "network error");
    leave(context);
  });
}

TEST_CASE("threads that use several sets in different orders do not wait for each other for ever") {
  job_of(3).run([](ddl_context*& context) {
    // The sets of every two ranks, and all of them.
    std::array<std::uint64_t, 4> sets{};
    const std::vector<std::vector<std::int32_t>> members{{0, 1}, {1, 2}, {0, 2}, {0, 1, 2}};
    for (std::size_t i = 0; i < members.size(); ++i) {
      expect_ok(ddl_process_set_create(context, members[i].data(),
                                       static_cast<std::int32_t>(members[i].size()), &sets[i]),
                "create");
    }
    std::vector<std::thread> threads;
    std::atomic<int> failures{0};
    for (std::size_t i = 0; i < sets.size(); ++i) {
      const bool is_member =
          std::count(members[i].begin(), members[i].end(), static_cast<std::int32_t>(ddl_rank(context))) > 0;
      if (!is_member) continue;
      threads.emplace_back([&, set = sets[i], size = members[i].size()] {
        OnGpu on(context);
        on.options.process_set = set;
        Floats floats(on, std::vector<float>(500, 1.0f));
        std::mt19937 random(std::random_device{}());
        float expected = 1;
        for (int round = 0; round < 10; ++round) {
          for (auto pause = random() % 100; pause > 0; --pause) std::this_thread::yield();
          if (ddl_allreduce(context, floats.data(), floats.data(), floats.size(), DDL_FLOAT32, DDL_SUM,
                            &on.options) != DDL_OK)
            ++failures;
          expected *= static_cast<float>(size);
        }
        for (const float value : floats.values()) failures += value == expected ? 0 : 1;
      });
    }
    for (std::thread& thread : threads) thread.join();
    expect(failures == 0, "a call failed, or a sum was wrong");
  });
}

TEST_CASE("named tensors and ordered calls by NCCL go on beside each other") {
  job_of(2).run([](ddl_context*& context) {
    std::thread ordered([&] {
      const OnGpu on(context);
      Floats floats(on, std::vector<float>(300, 1.0f));
      for (int round = 0; round < 20; ++round) expect_ok(sum(context, floats, on), "an ordered call");
      for (const float value : floats.values()) expect(value == 1048576.0f, "a wrong sum");
    });
    const OnGpu on(context);
    Floats floats(on, std::vector<float>(300, 1.0f));
    ddl_async_options options = DDL_ASYNC_OPTIONS_INIT;
    options.stream = on.stream();
    for (int round = 0; round < 20; ++round) {
      ddl_handle* handle = nullptr;
      expect_ok(ddl_allreduce_async(context, "gradient", floats.data(), floats.data(), floats.size(),
                                    DDL_FLOAT32, DDL_SUM, &options, &handle),
                "a named tensor");
      expect_ok(ddl_wait(handle), "its end");
    }
    ordered.join();
    for (const float value : floats.values()) expect(value == 1048576.0f, "a wrong named sum");
  });
}

TEST_CASE(
    "a rank that uses one communicator and ranks that use several do not wait for each other for ever") {
  job_of(3).run([](ddl_context*& context) {
    const std::array<std::int32_t, 2> pair{0, 1};
    std::uint64_t set = 0;
    expect_ok(ddl_process_set_create(context, pair.data(), 2, &set), "create");
    OnGpu on(context);
    Floats floats(on, std::vector<float>(300, 1.0f)), others(on, std::vector<float>(900, 0.0f));
    for (int round = 0; round < 3; ++round) {
      expect_ok(sum(context, floats, on), "a call of all");
      // NCCL connects for this kind of call, which lasts until all ranks are there.
      expect_ok(ddl_allgather(context, floats.data(), others.data(), 300, DDL_FLOAT32, &on.options),
                "an allgather");
      if (ddl_rank(context) == 2) continue;
      OnGpu in_set(on.gpu());
      in_set.options.process_set = set;
      Floats some(in_set, std::vector<float>(10, 1.0f));
      expect_ok(sum(context, some, in_set), "a call of two");
      for (const float value : some.values()) expect(value == 2.0f, "a wrong sum of two");
    }
    for (const float value : floats.values()) expect(value == 27.0f, "a wrong sum");
  });
}

TEST_CASE("different calls are found also where NCCL waits for the other ranks when it connects") {
  job_of(2).run([](ddl_context*& context) {
    const OnGpu on(context);
    Floats floats(on, std::vector<float>(100, 1.0f)), others(on, std::vector<float>(200, 0.0f));
    expect_ok(sum(context, floats, on), "the first call");
    ddl_status status =
        ddl_rank(context) == 0
            ? ddl_allgather(context, floats.data(), others.data(), 100, DDL_FLOAT32, &on.options)
            : ddl_broadcast(context, floats.data(), 100, DDL_FLOAT32, 0, &on.options);
    // The stream goes on when the mismatch has been found.
    (void)others.values();
    if (status == DDL_OK) status = sum(context, floats, on);
    expect_status(status, DDL_ERROR_MISMATCH, "a mismatch");
    expect_contains(ddl_last_error(), "broadcast");
    leave(context);
  });
}

TEST_CASE("a named tensor whose stream does not go on ends at its deadline") {
  Gate gate;
  std::atomic<int> left{2};
  ThreadJob job = job_of(2);
  job.timeout_seconds = 0.4;
  job.run([&](ddl_context*& context) {
    const OnGpu on(context);
    Floats floats(on, std::vector<float>(100, 1.0f));
    ddl_async_options options = DDL_ASYNC_OPTIONS_INIT;
    options.stream = on.stream();
    ddl_status status = DDL_OK;
    for (int round = 0; status == DDL_OK && round < 2; ++round) {
      if (round == 1 && ddl_rank(context) == 0) gate.hold(on.stream());
      ddl_handle* handle = nullptr;
      expect_ok(ddl_allreduce_async(context, "gradient", floats.data(), floats.data(), floats.size(),
                                    DDL_FLOAT32, DDL_SUM, &options, &handle),
                "a named tensor");
      status = ddl_wait(handle);
    }
    if (--left == 0) gate.open();
    expect_status(status, DDL_ERROR_TIMEOUT, "a stream that is held");
    leave(context);
  });
}

TEST_CASE("what one rank forces, all ranks do") {
  ThreadJob job;
  job.ranks = 3;
  job.gpu_operations = GpuOperations::kAuto;
  job.gpu_operations_of_rank_1 = GENERATE(GpuOperations::kStaged, GpuOperations::kNccl);
  job.run([](ddl_context*& context) {
    const OnGpu on(context);
    Floats floats(on, std::vector<float>(1000, 1.0f));
    for (int round = 0; round < 3; ++round) expect_ok(sum(context, floats, on), "a call");
    for (const float value : floats.values()) expect(value == 27.0f, "a wrong sum");
  });
}

TEST_CASE("a failure of the last call comes from ddl_finalize") {
  job_of(2).run([](ddl_context*& context) {
    const OnGpu on(context);
    Floats floats(on, std::vector<float>(100, 1.0f));
    expect_ok(sum(context, floats, on), "the first call");
    const std::uint64_t count = ddl_rank(context) == 1 ? 99 : 100;
    const ddl_status status =
        ddl_allreduce(context, floats.data(), floats.data(), count, DDL_FLOAT32, DDL_SUM, &on.options);
    // Unless the call itself was told before it had been put on the GPU.
    const ddl_status last = ddl_finalize(context);
    expect(status != DDL_OK || last != DDL_OK, "nobody was told");
    expect_contains(ddl_last_error(), "99 elements");
    context = nullptr;
  });
}

TEST_CASE("a call that is on its way does not disturb a graph that the program records") {
  Gate gate;
  job_of(2).run([&](ddl_context*& context) {
    const OnGpu on(context), recorded(on.gpu());
    Floats floats(on, std::vector<float>(100, 1.0f));
    expect_ok(sum(context, floats, on), "the first call");
    if (ddl_rank(context) == 0) gate.hold(on.stream());
    expect_ok(sum(context, floats, on), "a call");
    if (ddl_rank(context) == 0) {
      TestGpu::get().begin_capture(recorded.stream());
      const bool was_asked = TestGpu::get().wait_for_query_in_capture(10'000);
      TestGpu::get().end_capture(recorded.stream());
      gate.open();
      expect(was_asked, "the call's thread did not look at it meanwhile");
    }
    for (const float value : floats.values()) expect(value == 4.0f, "a wrong sum");
  });
}
