// How long ranks have waited, from what they show of themselves; and the memory in which they show it.
#include "launcher/node/stall_watch.h"

#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "support/catch.h"

using namespace ddl;
using namespace ddl::launcher;
using contract::CallWord;
using std::chrono::seconds;

namespace {

constexpr std::uint64_t kInside = CallWord::of(7, 1) | CallWord::kInside;

RankSnapshot snapshot(std::uint64_t call) {
  RankSnapshot now;
  now.phase = contract::RankRecord::Phase::kJoined;
  now.sets.push_back({1, 0, call, 0, -1, false, false});
  return now;
}

const StallWatch::Clock::time_point kBegin = StallWatch::Clock::now();

}  // namespace

TEST_CASE("a wait lasts as long as a rank shows the same call or tensor") {
  StallWatch watch({60, 0});
  (void)watch.look(0, snapshot(kInside), kBegin);
  RankSnapshot later = snapshot(kInside);
  later.tensors.push_back({std::uint64_t{1} << 32 | 1, 1, 5, "a"});
  const RankActivity one = watch.look(0, later, kBegin + seconds(50));
  CHECK(one.sets.at(0).call == CallActivity{"allreduce", 7, true, 50});
  CHECK(one.tensors.at(0).seconds == 0);
  CHECK(one.open_tensors == 1);
  CHECK_FALSE(watch.due({one}));
  const RankActivity other = watch.look(0, later, kBegin + seconds(65));
  CHECK(other.tensors.at(0).seconds == 15);
  CHECK(other.seconds == 15);
  CHECK(watch.due({other}) == 65);
  // Another tensor in the same place, and another call.
  later.tensors[0].state += std::uint64_t{1} << 32;
  later.sets[0].call = CallWord::of(7, 1);
  const RankActivity last = watch.look(0, later, kBegin + seconds(66));
  CHECK(last.tensors.at(0).seconds == 0);
  CHECK(last.sets.at(0).call == CallActivity{"allreduce", 7, false, 0});
  CHECK(last.seconds == 0);
  CHECK_FALSE(watch.due({last}));
}

TEST_CASE("the ddl_init of a rank's next program is another wait") {
  StallWatch watch({60, 0});
  RankSnapshot now;
  now.phase = contract::RankRecord::Phase::kJoining;
  now.inits = 1;
  (void)watch.look(0, now, kBegin);
  CHECK(watch.look(0, now, kBegin + seconds(40)).seconds == 40);
  now.inits = 2;
  const RankActivity next = watch.look(0, now, kBegin + seconds(50));
  CHECK(next.inits == 2);
  CHECK(next.seconds == 0);
}

TEST_CASE("a stall is reported when it begins, after each doubling, and when the job is to end") {
  StallWatch watch({60, 300});
  std::vector<double> reported;
  for (int at = 0; at <= 310; at += 10) {
    if (const auto due = watch.due({watch.look(0, snapshot(kInside), kBegin + seconds(at))}))
      reported.push_back(*due);
  }
  CHECK(reported == std::vector<double>{60, 120, 240, 300, 310});
}

TEST_CASE("a look at the ranks comes often enough, and not too often") {
  CHECK(StallWatch({60, 0}).pause() == seconds(10));
  CHECK(StallWatch({600, 0}).pause() == seconds(10));
  CHECK(StallWatch({60, 6}).pause() == seconds(1));
  CHECK(StallWatch({0.1, 0}).pause() == std::chrono::milliseconds(50));
}

TEST_CASE("ranks are told the first host that was lost, and the doorbell stays readable") {
  using contract::RankRecord;
  auto records = RankRecords::create(2, 256, 256, false);
  REQUIRE(records);
  const std::size_t bytes = RankRecord::kBytes * 2;
  void* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, records->fd(), 0);
  REQUIRE(memory != MAP_FAILED);
  auto* const record = static_cast<RankRecord*>(memory);
  pollfd doorbell{records->doorbell(), POLLIN, 0};
  CHECK(::poll(&doorbell, 1, 0) == 0);
  CHECK_FALSE(records->tell({"node4", 6, 4711, std::string(1000, 'x')}));  // none has joined
  record->phase = RankRecord::Phase::kJoined;
  CHECK(records->tell({"node3", 4, 4710, "later"}));
  CHECK(::poll(&doorbell, 1, 0) == 1);
  CHECK(record->lost_host.rank == 7);
  CHECK(record->lost_host.pid == 4711);
  CHECK(std::string(record->lost_host.name.data()) == "node4");
  CHECK(std::string(record->lost_host.text.data()) == std::string(record->lost_host.text.size() - 1, 'x'));
  ::munmap(memory, bytes);
}

TEST_CASE("each rank of a node has a record of its own, of which anything may be written") {
  using contract::RankRecord;
  // A record, and a ring behind it that needs less than as much again.
  constexpr std::size_t kEach = 2 * RankRecord::kBytes;
  const auto records = RankRecords::create(3, 256, 256, false);
  REQUIRE(records);
  CHECK(records->place_of(0) == "5:0:131072:6");
  CHECK(records->place_of(2) == "5:262144:131072:6");
  CHECK(records->gone_rank(2) == -1);
  void* const memory = ::mmap(nullptr, 3 * kEach, PROT_READ | PROT_WRITE, MAP_SHARED, records->fd(), 0);
  REQUIRE(memory != MAP_FAILED);
  auto* const record = reinterpret_cast<RankRecord*>(static_cast<std::byte*>(memory) + 2 * kEach);
  record->gone = 8;
  CHECK(records->gone_rank(2) == 7);
  CHECK(records->gone_rank(1) == -1);
  CHECK(records->gone_rank(3) == -1);

  record->sets[1].name = std::uint64_t{9} << 32 | 3;
  record->tensor_slots = 2;
  record->tensors[0].state = std::uint64_t{1} << 32 | 2;
  record->tensors[1].state = std::uint64_t{2} << 32 | 4711;  // of no set
  std::memset(record->tensors[0].name.data(), 'n', record->tensors[0].name.size());
  RankSnapshot now = records->read(2);
  REQUIRE(now.sets.size() == 1);
  CHECK(now.sets[0].generation == 9);
  CHECK(now.sets[0].id == 2);
  REQUIRE(now.tensors.size() == 1);
  CHECK(now.tensors[0].generation == 9);
  CHECK(now.tensors[0].name == std::string(48, 'n'));

  std::memset(static_cast<void*>(record), 0xff, RankRecord::kBytes);
  CHECK(records->read(2).sets.empty());  // not even the magic number
  record->magic = RankRecord::kMagic;
  now = records->read(2);
  CHECK(now.sets.size() == RankRecord::kSets);
  CHECK(now.phase == RankRecord::Phase::kLeft);
  CHECK(now.pid == 0);
  CHECK(records->gone_rank(2) == -1);
  StallWatch watch({60, 0});
  const RankActivity activity = watch.look(2, now, kBegin);
  CHECK(activity.sets.at(0).call.kind == "call");
  ::munmap(memory, 3 * kEach);
  CHECK(::pwrite(records->fd(), "x", 1, static_cast<off_t>(3 * kEach)) == -1);
}
