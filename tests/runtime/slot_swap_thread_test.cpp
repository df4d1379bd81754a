// Two ranks that pass their staging slots to each other, with calls in between that use them otherwise, or not alike.
#include <array>
#include <vector>

#include "runtime/support/expect.h"
#include "runtime/support/thread_job.h"
#include "support/catch.h"

using namespace ddl::conformance;
using ddl::runtime::test::ThreadJob;

namespace {

/// Bytes of a slot: a call has up to four chunks.
constexpr std::size_t kSlot = 4096;

/// One rank's buffers, as large as kMost elements.
class Caller {
 public:
  static constexpr std::uint64_t kMost = 4 * kSlot / sizeof(std::int32_t);

  explicit Caller(ddl_context* context) : context_(context), rank_(ddl_rank(context)) {}

  /// What this rank or the other one gives in a round.
  static std::int32_t value(int rank, int round, std::uint64_t at) {
    return static_cast<std::int32_t>(at) * 3 + round * 7 + rank * 100'000;
  }

  void allreduce(int round, std::uint64_t count) {
    give(round);
    expect_ok(ddl_allreduce(context_, send_.data(), recv_.data(), count, DDL_INT32, DDL_SUM, nullptr),
              "allreduce");
    for (std::uint64_t i = 0; i < count; ++i)
      expect(recv_[i] == value(0, round, i) + value(1, round, i), "sum " + std::to_string(i));
  }
  void allgather(int round, std::uint64_t count) {
    give(round);
    expect_ok(ddl_allgather(context_, send_.data(), recv_.data(), count, DDL_INT32, nullptr), "allgather");
    for (std::uint64_t i = 0; i < count; ++i) {
      expect(recv_[i] == value(0, round, i) && recv_[count + i] == value(1, round, i),
             "element " + std::to_string(i));
    }
  }
  void alltoall(int round, std::uint64_t count) {
    give(round);
    expect_ok(ddl_alltoall(context_, send_.data(), recv_.data(), count, DDL_INT32, nullptr), "alltoall");
    const std::uint64_t mine = static_cast<std::uint64_t>(rank_) * count;
    for (std::uint64_t i = 0; i < count; ++i) {
      expect(recv_[i] == value(0, round, mine + i) && recv_[count + i] == value(1, round, mine + i),
             "element " + std::to_string(i));
    }
  }
  void reduce_scatter(int round, std::uint64_t count) {
    give(round);
    const std::array<std::uint64_t, 2> counts{count, count};
    expect_ok(
        ddl_reduce_scatter(context_, send_.data(), recv_.data(), counts.data(), DDL_INT32, DDL_SUM, nullptr),
        "reduce_scatter");
    const std::uint64_t mine = static_cast<std::uint64_t>(rank_) * count;
    for (std::uint64_t i = 0; i < count; ++i)
      expect(recv_[i] == value(0, round, mine + i) + value(1, round, mine + i), "sum " + std::to_string(i));
  }
  void broadcast(int round, std::uint64_t count, int root) {
    give(round);
    expect_ok(ddl_broadcast(context_, send_.data(), count, DDL_INT32, root, nullptr), "broadcast");
    for (std::uint64_t i = 0; i < count; ++i)
      expect(send_[i] == value(root, round, i), "element " + std::to_string(i));
  }
  /// One rank gathers, the other one reduces another number of elements, or is at a barrier.
  void differ(int round, std::uint64_t count) {
    give(round);
    recv_.assign(recv_.size(), -1);
    const bool is_odd = rank_ == round % 2;
    const ddl_status status =
        !is_odd ? ddl_allgather(context_, send_.data(), recv_.data(), count, DDL_INT32, nullptr)
        : round % 4 < 2
            ? ddl_barrier(context_, nullptr)
            : ddl_allreduce(context_, send_.data(), recv_.data(), 2 * count, DDL_INT32, DDL_SUM, nullptr);
    expect_status(status, DDL_ERROR_MISMATCH, "calls that differ");
    for (const std::int32_t element : recv_) expect(element == -1, "a receive buffer was written");
  }

 private:
  void give(int round) {
    for (std::uint64_t i = 0; i < send_.size(); ++i) send_[i] = value(rank_, round, i);
  }

  ddl_context* context_;
  int rank_;
  std::vector<std::int32_t> send_ = std::vector<std::int32_t>(2 * kMost);
  std::vector<std::int32_t> recv_ = std::vector<std::int32_t>(2 * kMost);
};

}  // namespace

TEST_CASE("two ranks get each other's data in any order of calls, also after calls that differed") {
  ThreadJob job;
  job.ranks = 2;
  job.slot_bytes = kSlot;
  job.spin = std::chrono::microseconds(GENERATE(0, 50));
  job.stores = GENERATE(ddl::runtime::Stores::kPlain, ddl::runtime::Stores::kStreaming);
  job.first_sequence = GENERATE(0U, 4294967200U);  // sequences start again from 0
  const std::uint64_t seed = GENERATE(1, 2, 3);
  CAPTURE(seed);
  job.run([&](ddl_context*& context) {
    Caller caller(context);
    // The same on both ranks.
    std::uint64_t state = seed;
    const auto next = [&state](std::uint64_t below) {
      state = state * 6364136223846793005U + 1442695040888963407U;
      return (state >> 33) % below;
    };
    for (int round = 0; round < 150; ++round) {
      // In a flag's line, one chunk, several.
      const std::array<std::uint64_t, 4> counts{1, 32, kSlot / sizeof(std::int32_t), Caller::kMost};
      const std::uint64_t count = counts[next(4)];
      switch (next(7)) {
        case 0: caller.allreduce(round, count); break;
        case 1: caller.allgather(round, count); break;
        case 2: caller.alltoall(round, count); break;
        case 3: caller.reduce_scatter(round, count); break;
        case 4: caller.broadcast(round, count, static_cast<int>(next(2))); break;
        case 5: expect_ok(ddl_barrier(context, nullptr), "barrier"); break;
        default: caller.differ(round, count); break;
      }
    }
  });
}
