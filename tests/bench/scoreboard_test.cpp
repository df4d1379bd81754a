#include "bench/scoreboard.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

#include "base/cpu_set.h"
#include "bench/machine.h"
#include "support/catch.h"
#include "support/skip.h"
#include "support/temporary_directory.h"

namespace ddl::bench {
namespace {

TEST_CASE("ranks see each other's scoreboard, and the slowest rank counts for each call") {
  const std::vector<SizePlan> plan{{4, 3, 0}, {8, 2, 0}};
  auto board = Scoreboard::create(2, plan);
  REQUIRE(board);
  auto other = Scoreboard::open(board->path(), 2, plan);
  REQUIRE(other);
  const double first[] = {1, 5, 2, 7, 7};
  const double second[] = {4, 3, 2, 6, 8};
  for (int call = 0; call < 3; ++call) board->seconds(0, 0)[call] = first[call];
  for (int call = 0; call < 2; ++call) board->seconds(0, 1)[call] = first[3 + call];
  for (int call = 0; call < 3; ++call) other->seconds(1, 0)[call] = second[call];
  for (int call = 0; call < 2; ++call) other->seconds(1, 1)[call] = second[3 + call];
  CHECK(board->timed_calls(0).seconds == std::vector<double>{4, 5, 2});
  CHECK(board->timed_calls(1).seconds == std::vector<double>{7, 8});
}

TEST_CASE("only calls that every rank has made count") {
  auto board = Scoreboard::create(2, {{4, 4, 0}});
  REQUIRE(board);
  for (int call = 0; call < 3; ++call) board->seconds(0, 0)[call] = 1;
  for (int call = 0; call < 2; ++call) board->seconds(1, 0)[call] = 2;
  CHECK(board->timed_calls(0).seconds == std::vector<double>{2, 2});
}

TEST_CASE("a scoreboard in a file is opened by its path, and is not created twice") {
  const ddl::test::TemporaryDirectory directory;
  const std::string path = directory / "scoreboard";
  const std::vector<SizePlan> plan{{4, 2, 0}};
  auto board = Scoreboard::create_file(path, 2, plan);
  REQUIRE(board);
  CHECK(!Scoreboard::create_file(path, 2, plan));
  auto other = Scoreboard::open(path, 2, plan);
  REQUIRE(other);
  for (int rank = 0; rank < 2; ++rank) other->seconds(rank, 0)[0] = rank + 1;
  CHECK(board->timed_calls(0).seconds == std::vector<double>{2});
}

TEST_CASE("a rank that sleeps at a barrier is woken") {
  auto board = Scoreboard::create(2, {{4, 1, 0}});
  REQUIRE(board);
  std::thread early([&] { board->barrier(0, Wait::kYield); });
  // Long enough for the other rank to fall asleep; if it has not, the test passes more easily.
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(5);
  while (std::chrono::steady_clock::now() < until) std::this_thread::yield();
  board->barrier(1, Wait::kYield);
  early.join();
}

TEST_CASE("a library that sends only inside calls is called while its rank waits, however it waits") {
  const auto wait = GENERATE(Wait::kSpin, Wait::kYield, Wait::kSleep);
  CAPTURE(static_cast<int>(wait));
  auto board = Scoreboard::create(2, {{4, 1, 0}});
  REQUIRE(board);
  auto other = Scoreboard::open(board->path(), 2, {{4, 1, 0}});
  REQUIRE(other);
  std::atomic<int> calls = 0;
  board->on_long_wait([&] { ++calls; });
  std::thread early([&] { board->barrier(0, wait); });
  // The other rank comes only when the first one has been given time twice.
  while (calls < 2) std::this_thread::yield();
  other->barrier(1, wait);
  early.join();
}

TEST_CASE("the parts of two ranks never share a cache line") {
  auto board = Scoreboard::create(2, {{4, 3, 0}});
  REQUIRE(board);
  for (const int rank : {0, 1}) CHECK(reinterpret_cast<std::uintptr_t>(board->seconds(rank, 0)) % 64 == 0);
  CHECK(board->seconds(1, 0) - board->seconds(0, 0) >= 8);
}

TEST_CASE("a scoreboard of another plan or another number of ranks is refused") {
  const std::vector<SizePlan> plan{{4, 3, 0}};
  auto board = Scoreboard::create(2, plan);
  REQUIRE(board);
  CHECK(!Scoreboard::open(board->path(), 3, plan));
  CHECK(!Scoreboard::open(board->path(), 2, {{4, 300, 0}}));
  CHECK(!Scoreboard::open("/nonexistent", 2, plan));
}

TEST_CASE("no rank leaves a barrier before the last has arrived") {
  constexpr int kThreads = 3;
  constexpr int kRounds = 2000;
  auto board = Scoreboard::create(kThreads, {{4, 1, 0}});
  REQUIRE(board);
  std::atomic<int> arrived{0};
  std::atomic<int> early{0};
  std::atomic<int> wrong{0};
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < kThreads; ++rank) {
    ranks.emplace_back([&, rank] {
      for (int round = 1; round <= kRounds; ++round) {
        arrived.fetch_add(1);
        // Rank 0 passes enough at every third barrier; the values of the others have no effect.
        const bool enough = board->barrier(rank, Wait::kYield, rank == 0 ? round % 3 == 0 : round % 2 == 0);
        if (enough != (round % 3 == 0)) wrong.fetch_add(1);
        if (arrived.load() < round * kThreads) early.fetch_add(1);
      }
    });
  }
  for (std::thread& rank : ranks) rank.join();
  CHECK(early.load() == 0);
  CHECK(wrong.load() == 0);
}

TEST_CASE("a call has a distance if the ranks had it before and after the call") {
  auto board = Scoreboard::create(2, {{4, 2, 1}, {8, 2, 0}});
  REQUIRE(board);
  for (const int rank : {0, 1}) {
    for (int call = 0; call < 2; ++call) board->seconds(rank, 0)[call] = 1;
  }
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < 2; ++rank) {
    ranks.emplace_back([&, rank] {
      for (const std::uint64_t call : {1, 2, 3}) {
        board->barrier(rank, Wait::kYield);
        board->record_distance(rank, 0, call);
      }
    });
  }
  for (std::thread& rank : ranks) rank.join();
  const TimedCalls calls = board->timed_calls(0);
  REQUIRE(calls.distances.size() == 2);
  for (const std::uint64_t call : {0, 1}) {
    const Distance before = board->distance_before(0, call + 1), after = board->distance_before(0, call + 2);
    CHECK(before != Distance::kUnknown);
    CHECK(calls.distances[call] == (before == after ? before : Distance::kUnknown));
  }
  CHECK(board->distance_before(1, 0) == Distance::kUnknown);
}

TEST_CASE("CPUs have a distance, one alone has none") {
  const std::vector<int> allowed = CpuSet::allowed().cpus();
  CHECK(distance_of({allowed[0]}) == Distance::kUnknown);
  if (allowed.size() < 2) DDL_SKIP("there is only one CPU");
  CHECK(distance_of({allowed[0], allowed[1]}) != Distance::kUnknown);
  CHECK(far_cpus(allowed, 2, Deadline::after(std::chrono::milliseconds(1))).size() == 2);
}

}  // namespace
}  // namespace ddl::bench
