// Small calls that repeat the one before them: what they compare, find wrong and record, as every call does.
#include <sys/mman.h>
#include <unistd.h>

#include <array>

#include "runtime/support/expect.h"
#include "runtime/support/thread_job.h"
#include "support/catch.h"

using namespace ddl::conformance;
using ddl::runtime::test::ThreadJob;

namespace {

ddl_status sum_of(ddl_context* context, const std::int32_t* send, std::int32_t* recv, std::uint64_t count,
                  const ddl_call_options* options = nullptr) {
  return ddl_allreduce(context, send, recv, count, DDL_INT32, DDL_SUM, options);
}

/// Elements that end where no memory follows: who reads beyond them is killed.
class LastOfPage {
 public:
  explicit LastOfPage(int count)
      : page_(static_cast<std::size_t>(::sysconf(_SC_PAGESIZE))),
        count_(count),
        pages_(::mmap(nullptr, 2 * page_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
    expect(pages_ != MAP_FAILED, "mmap");
    expect(::mprotect(static_cast<std::byte*>(pages_) + page_, page_, PROT_NONE) == 0, "mprotect");
  }
  ~LastOfPage() { (void)::munmap(pages_, 2 * page_); }
  LastOfPage(const LastOfPage&) = delete;
  LastOfPage& operator=(const LastOfPage&) = delete;

  std::int32_t* data() const {
    return reinterpret_cast<std::int32_t*>(static_cast<std::byte*>(pages_) + page_) - count_;
  }

 private:
  std::size_t page_;
  int count_;
  void* pages_;
};

/// Makes a call, and what repeats it.
template <class MakeCall>
void twice(MakeCall make_call) {
  make_call();
  make_call();
}

void add_up(ddl_context* context, int calls) {
  for (int call = 0; call < calls; ++call) {
    std::int32_t value = call;
    expect_ok(sum_of(context, &value, &value, 1), "allreduce");
    expect(value == call * ddl_size(context), "the sum of call " + std::to_string(call));
  }
}

}  // namespace

TEST_CASE("a rank whose calls have options of their own makes the same calls as ranks that repeat theirs") {
  ThreadJob job;
  job.ranks = GENERATE(2, 3, 5);
  job.spin = std::chrono::microseconds(GENERATE(0, 50));
  CAPTURE(job.ranks, job.spin.count());
  job.run([&](ddl_context*& context) {
    const int rank = ddl_rank(context);
    ddl_call_options options = DDL_CALL_OPTIONS_INIT;
    options.timeout_seconds = 30;
    const ddl_call_options* const own = rank == 1 ? &options : nullptr;
    const std::vector<std::uint64_t> counts(static_cast<std::size_t>(job.ranks), 2);
    for (std::int32_t round = 0; round < 200; ++round) {
      std::array<std::int32_t, 10> send{}, recv{};
      const std::int32_t sum = job.ranks * round + job.ranks * (job.ranks - 1) / 2;
      twice([&] {
        send.fill(round + rank);
        // In place: the third rank and those behind it must read their input before they write over it.
        expect_ok(sum_of(context, send.data(), send.data(), 3, own), "allreduce in place");
        expect(send[0] == sum && send[2] == sum && send[3] == round + rank, "the sum in place");
      });
      send.fill(round + rank);
      twice([&] {
        recv.fill(-1);
        expect_ok(ddl_allgather(context, send.data(), recv.data(), 1, DDL_INT32, own), "allgather");
        expect(recv[1] == round + 1 && recv[static_cast<std::size_t>(job.ranks)] == -1, "what rank 1 gave");
      });
      twice([&] {
        std::int32_t value = rank == 1 ? round : -1;
        expect_ok(ddl_broadcast(context, &value, 1, DDL_INT32, 1, own), "broadcast");
        expect(value == round, "what the root gave");
      });
      twice([&] {
        recv.fill(-1);
        expect_ok(ddl_alltoall(context, send.data(), recv.data(), 2, DDL_INT32, own), "alltoall");
        expect(recv[3] == round + 1, "what rank 1 gave to all");
      });
      twice([&] {
        recv.fill(0);
        expect_ok(
            ddl_reduce_scatter(context, send.data(), recv.data(), counts.data(), DDL_INT32, DDL_SUM, own),
            "reduce_scatter");
        expect(recv[0] == sum && recv[1] == sum && recv[2] == 0, "the sum of a part");
      });
    }
  });
}

TEST_CASE("a call that repeats a small one reads and writes nothing behind its buffers") {
  ThreadJob job;
  job.ranks = GENERATE(1, 2, 3);
  const int count = GENERATE(1, 3, 100);
  CAPTURE(job.ranks, count);
  job.run([&](ddl_context*& context) {
    const LastOfPage one(count), result(count), of_all(job.ranks * count), results(job.ranks * count);
    const auto elements = static_cast<std::uint64_t>(count);
    const std::vector<std::uint64_t> counts(static_cast<std::size_t>(job.ranks), elements);
    twice([&] { expect_ok(sum_of(context, one.data(), result.data(), elements), "allreduce"); });
    twice(
        [&] { expect_ok(ddl_broadcast(context, one.data(), elements, DDL_INT32, 0, nullptr), "broadcast"); });
    twice([&] {
      expect_ok(ddl_allgather(context, one.data(), results.data(), elements, DDL_INT32, nullptr),
                "allgather");
    });
    twice([&] {
      expect_ok(ddl_alltoall(context, of_all.data(), results.data(), elements, DDL_INT32, nullptr),
                "alltoall");
    });
    twice([&] {
      expect_ok(ddl_reduce_scatter(context, of_all.data(), result.data(), counts.data(), DDL_INT32, DDL_SUM,
                                   nullptr),
                "reduce_scatter");
    });
  });
}

TEST_CASE("more different small calls than are remembered, in turns, have the right results") {
  ThreadJob job;
  job.ranks = 2;
  job.run([&](ddl_context*& context) {
    for (std::int32_t round = 0; round < 20; ++round) {
      for (std::uint64_t count = 1; count <= 12; ++count) {
        std::array<std::int32_t, 12> send{}, recv{};
        send.fill(round + ddl_rank(context));
        expect_ok(sum_of(context, send.data(), recv.data(), count), "allreduce");
        for (std::uint64_t e = 0; e < recv.size(); ++e) {
          expect(recv[e] == (e < count ? 2 * round + 1 : 0),
                 "element " + std::to_string(e) + " of " + std::to_string(count));
        }
      }
    }
  });
}

TEST_CASE("a call that repeats a small one is compared before its buffer is written") {
  ThreadJob job;
  job.ranks = GENERATE(2, 3);
  const int odd_one = GENERATE(0, 1);
  CAPTURE(job.ranks, odd_one);
  job.run([&](ddl_context*& context) {
    add_up(context, 3);
    std::array<std::int32_t, 2> send{1, 2}, recv{-1, -1};
    const std::uint64_t count = ddl_rank(context) == odd_one ? 2 : 1;
    expect_status(sum_of(context, send.data(), recv.data(), count), DDL_ERROR_MISMATCH, "calls that differ");
    expect_contains(ddl_last_error(), "called allreduce(sum, int32, 1 element)");
    expect_contains(ddl_last_error(), "called allreduce(sum, int32, 2 elements)");
    expect(recv[0] == -1 && recv[1] == -1, "a receive buffer was written");
    add_up(context, 3);
  });
}

TEST_CASE("wrong buffers of a call that would repeat a small one are refused") {
  ThreadJob job;
  job.ranks = 2;
  job.run([&](ddl_context*& context) {
    std::array<std::int32_t, 4> send{1, 2, 3, 4}, recv{};
    expect_ok(sum_of(context, send.data(), recv.data(), 2), "the first");
    auto* const between = reinterpret_cast<std::int32_t*>(reinterpret_cast<std::byte*>(recv.data()) + 1);
    const auto refused = [&](const std::int32_t* from, std::int32_t* to, const char* why) {
      expect_status(sum_of(context, from, to, 2), DDL_ERROR_INVALID_ARGUMENT, why);
      expect_contains(ddl_last_error(), why);
    };
    refused(nullptr, recv.data(), "send is null");
    refused(send.data(), nullptr, "recv is null");
    refused(send.data(), between, "recv is not aligned for int32");
    refused(send.data(), send.data() + 1, "send and recv overlap");
    expect_ok(sum_of(context, send.data(), recv.data(), 2), "the same again");
    expect(recv[0] == 2 && recv[1] == 4, "the sum");
  });
}

TEST_CASE("a rank that waits in a call that repeats a small one says for whom, and in which call") {
  ThreadJob job;
  job.ranks = 2;
  job.timeout_seconds = 0.2;
  job.run([&](ddl_context*& context) {
    add_up(context, 5);
    if (ddl_rank(context) == 1) return;
    std::int32_t value = 1;
    const ddl_status status = sum_of(context, &value, &value, 1);
    expect(status == DDL_ERROR_TIMEOUT || status == DDL_ERROR_PEER_LOST, "an allreduce without rank 1");
    expect_contains(ddl_last_error(), "allreduce #6 (sum, int32, 1 element)");
    expect_contains(ddl_last_error(), "rank 1 on host1");
  });
}
