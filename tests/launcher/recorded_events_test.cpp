// What ranks have recorded, as their agent reads it and sends it in pieces.
#include "launcher/node/recorded_events.h"

#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <limits>

#include "launcher/protocol/codec.h"
#include "support/catch.h"

using namespace ddl::launcher;
using ddl::contract::Event;
using ddl::contract::EventRing;
using ddl::contract::RankRecord;
using ddl::timeline::RingSnapshot;

namespace {

Event call_event(std::uint64_t number, std::int64_t begin) {
  Event event;
  event.number = number;
  event.kind = Event::Kind::kCall;
  event.call_kind = 1;
  event.begin = begin;
  event.end = begin + 10;
  return event;
}

RingSnapshot snapshot_of(std::uint64_t events) {
  RingSnapshot ring;
  for (std::uint64_t number = 1; number <= events; ++number)
    ring.events.push_back(call_event(number, static_cast<std::int64_t>(1000 * number)));
  ring.count = events + 3;
  ring.steps = 2;
  ring.clock_peer = 5;
  ring.samples = {{100, -7, 3}, {200, -8, 2}};
  return ring;
}

/// Records of which the test is the ranks.
class OwnRecords {
 public:
  explicit OwnRecords(std::size_t ranks, std::uint32_t events = 4096, std::uint32_t kept = 256)
      : records_(*RankRecords::create(ranks, events, kept, false)) {
    each_ = static_cast<std::size_t>(std::stoul(records_.place_of(1).substr(2)));
    bytes_ = ranks * each_;
    void* const memory = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, records_.fd(), 0);
    REQUIRE(memory != MAP_FAILED);
    memory_ = static_cast<std::byte*>(memory);
  }
  ~OwnRecords() { ::munmap(memory_, bytes_); }
  OwnRecords(const OwnRecords&) = delete;
  OwnRecords& operator=(const OwnRecords&) = delete;

  RankRecords& operator*() { return records_; }
  RankRecord& record(std::size_t rank) { return *reinterpret_cast<RankRecord*>(memory_ + rank * each_); }
  EventRing& ring(std::size_t rank) {
    return *reinterpret_cast<EventRing*>(memory_ + rank * each_ + RankRecord::kBytes);
  }
  /// The rank's next events, a microsecond after the other.
  void add_events(std::size_t rank, std::uint64_t events, std::int64_t first_begin) {
    for (std::uint64_t i = 0; i < events; ++i)
      add(rank, call_event(0, first_begin + static_cast<std::int64_t>(1000 * i)));
  }
  void add(std::size_t rank, Event event) {
    EventRing& own = ring(rank);
    event.number = own.count + 1;
    std::memcpy(reinterpret_cast<std::byte*>(&own) + EventRing::kHeadBytes +
                    (event.number - 1) % own.kept * sizeof(Event),
                &event, sizeof event);
    own.count = event.number;
  }

 private:
  RankRecords records_;
  std::size_t each_ = 0, bytes_ = 0;
  std::byte* memory_ = nullptr;
};

std::int64_t nanoseconds_now() {
  return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

/// All pieces of the answer to a question, as the head puts them together.
RingSnapshot whole_answer(RecordedEvents& events, message::AskEvents ask, std::size_t rank, int& pieces) {
  RingSnapshot ring;
  pieces = 0;
  for (;;) {
    ask.from = static_cast<std::int64_t>(ring.events.size());
    const message::Events piece = events.answer(ask, rank);
    CHECK(piece.id == ask.id);
    CHECK(piece.rank == ask.rank);
    REQUIRE(message::add_piece(piece, ring));
    ++pieces;
    if (piece.events.empty() || static_cast<std::int64_t>(ring.events.size()) >= piece.total) return ring;
  }
}

/// As long as it exists, no file of this process is longer.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    REQUIRE(::getrlimit(RLIMIT_FSIZE, &before_) == 0);
    const rlimit now{bytes, before_.rlim_max};
    REQUIRE(::setrlimit(RLIMIT_FSIZE, &now) == 0);
  }
  ~FileSizeLimit() { ::setrlimit(RLIMIT_FSIZE, &before_); }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  rlimit before_{};
};

}  // namespace

TEST_CASE("what a rank has recorded is sent in pieces, and is the same when they are put together") {
  const RingSnapshot ring = snapshot_of(10);
  for (const std::size_t most : {1, 3, 5, 10, 100}) {
    RingSnapshot again;
    while (again.events.size() < ring.events.size()) {
      const auto piece =
          message::events_message({4, 2, 100, static_cast<std::int64_t>(again.events.size())}, ring, most);
      CHECK(piece.id == 4);
      CHECK(piece.rank == 2);
      CHECK(piece.total == 10);
      REQUIRE(piece.events.size() == std::min(most, 10 - again.events.size()) * sizeof(Event));
      REQUIRE(message::add_piece(piece, again));
    }
    CHECK(again == ring);
  }
  RingSnapshot empty;
  REQUIRE(message::add_piece(message::events_message({}, {}, 5), empty));
  CHECK(empty == RingSnapshot{});
}

TEST_CASE("a question for events that do not exist is answered with none") {
  const RingSnapshot ring = snapshot_of(3);
  for (const std::int64_t from :
       {std::int64_t{3}, std::int64_t{4}, std::numeric_limits<std::int64_t>::max()}) {
    const auto piece = message::events_message({1, 0, 9, from}, ring, 5);
    CHECK(piece.from == 3);
    CHECK(piece.events.empty());
  }
  const auto piece = message::events_message({1, 0, 9, std::numeric_limits<std::int64_t>::min()}, ring, 5);
  CHECK(piece.from == 0);
  CHECK(piece.events.size() == 3 * sizeof(Event));
}

TEST_CASE("a piece that does not follow, or is no whole number of events, is refused") {
  const RingSnapshot ring = snapshot_of(4);
  RingSnapshot begun;
  REQUIRE(message::add_piece(message::events_message({1, 0, 9, 0}, ring, 2), begun));
  const message::Events next = message::events_message({1, 0, 9, 2}, ring, 2);
  const auto is_accepted = [&](void (*change)(message::Events&)) {
    message::Events changed = next;
    change(changed);
    RingSnapshot copy = begun;
    return message::add_piece(changed, copy);
  };
  CHECK(is_accepted([](message::Events&) {}));
  CHECK_FALSE(is_accepted([](message::Events& piece) { piece.from = 0; }));
  CHECK_FALSE(is_accepted([](message::Events& piece) { piece.from = 3; }));
  CHECK_FALSE(is_accepted([](message::Events& piece) { piece.from = -1; }));
  CHECK_FALSE(is_accepted([](message::Events& piece) { piece.events.pop_back(); }));
  CHECK_FALSE(is_accepted([](message::Events& piece) { piece.events += "x"; }));
  CHECK_FALSE(is_accepted([](message::Events& piece) { piece.samples.pop_back(); }));
  CHECK_FALSE(is_accepted([](message::Events& piece) { piece.count = -1; }));
  CHECK_FALSE(is_accepted([](message::Events& piece) { piece.steps = -1; }));
}

TEST_CASE("what a rank has added up goes to the head, whatever it has written there") {
  OwnRecords records(1);
  EventRing& ring = records.ring(0);
  CHECK((*records).calls(0).step_seconds == 0);
  ring.steps = 5;
  ring.first_step_end = 1'000'000'000;
  ring.last_step_end = 3'000'000'000;
  CHECK((*records).calls(0).steps == 5);
  CHECK((*records).calls(0).step_seconds == Approx(0.5));

  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
  ring.steps = 2;
  ring.last_step_end = std::numeric_limits<std::int64_t>::max();
  records.record(0).tensor_wait_nanoseconds = kMost;
  records.record(0).totals[1].calls = kMost;
  records.record(0).totals[1].nanoseconds = kMost;
  records.record(0).awaited[0].rank = 1;
  records.record(0).awaited[0].nanoseconds = kMost;
  message::RankEnded ended;
  ended.outcome.calls = (*records).calls(0);
  const auto received = message::decode<message::AgentToHead>(message::encode<message::AgentToHead>(ended));
  REQUIRE(received);
  CHECK(std::get<message::RankEnded>(*received).outcome.calls == ended.outcome.calls);
}

TEST_CASE("of a rank's calls, neither the waits that are told fall, nor the rest") {
  const auto told = [](double seconds, double wait, const RankCalls& before) {
    RankCalls now;
    now.sums = {{"allreduce", false, 5, 0, seconds, wait}};
    return without_fall(now, before);
  };
  const RankCalls first = told(4, 1, {});
  CHECK(first.sums[0].wait_seconds == 1);
  // It has waited for 3 s in a call that goes on.
  const RankCalls second = told(4, 4, first);
  CHECK(second.sums[0].wait_seconds == 1);
  const RankCalls third = told(8, 4, second);
  CHECK(third.sums[0].wait_seconds == 4);
  CHECK(told(3.5, 0.5, third).sums[0].wait_seconds == 0.5);  // another process
  CHECK(told(1, 2, {}).sums[0].wait_seconds == 1);
}

TEST_CASE("an agent answers with one copy of a rank's ring, in pieces, while the rank goes on") {
  OwnRecords records(2, 8192, 8192);
  RecordedEvents events(*records, 2);
  records.add_events(1, 5000, 1'000'000);
  records.ring(1).steps = 7;
  message::AskEvents ask{11, 40, EventRing::kMaxCapacity, 0, false};
  const message::Events first = events.answer(ask, 1);
  CHECK(first.total == 5000);
  CHECK(first.earliest == 1'000'000);
  CHECK(first.now > 0);
  CHECK(first.steps == 7);
  records.add_events(1, 1000, 9'000'000'000);
  RingSnapshot ring;
  REQUIRE(message::add_piece(first, ring));
  while (static_cast<std::int64_t>(ring.events.size()) < first.total) {
    ask.from = static_cast<std::int64_t>(ring.events.size());
    const message::Events piece = events.answer(ask, 1);
    CHECK(piece.total == first.total);
    CHECK(piece.now == first.now);
    REQUIRE_FALSE(piece.events.empty());
    REQUIRE(message::add_piece(piece, ring));
  }
  CHECK(ring.events.back().number == 5000);
  // The next question is about a new copy.
  int pieces = 0;
  CHECK(whole_answer(events, {12, 40, EventRing::kMaxCapacity, 0, false}, 1, pieces).events.size() == 6000);
  CHECK(pieces == 3);
  CHECK(events.answer({13, 0, 100, 0, false}, 0).total == 0);
}

TEST_CASE("only the latest events are sent if so many are asked for, and all say when the first began") {
  OwnRecords records(2);
  RecordedEvents events(*records, 2);
  records.add_events(0, 100, 5000);
  for (const std::int64_t latest : {std::int64_t{0}, std::int64_t{-4}, std::int64_t{32}}) {
    const message::Events piece = events.answer({latest, 0, latest, 0, false}, 0);
    CHECK(piece.total == std::max<std::int64_t>(latest, 0));
    CHECK(piece.earliest == 5000);
    CHECK(piece.count == 100);
    if (latest <= 0) continue;
    RingSnapshot ring;
    REQUIRE(message::add_piece(piece, ring));
    CHECK(ring.events.front().number == 69);
  }
}

TEST_CASE("a timeline that begins later has only the events since then, and keeps more of them") {
  OwnRecords records(2);
  RecordedEvents events(*records, 2);
  int pieces = 0;
  records.add_events(0, 300, 5000);
  events.record_timeline(1000);
  CHECK(records.ring(0).is_exact == 1);
  CHECK(records.ring(0).kept == 512);
  CHECK(whole_answer(events, {1, 0, 9999, 0, true}, 0, pieces).events.empty());
  records.add_events(0, 400, 900'000'000);
  const RingSnapshot since = whole_answer(events, {2, 0, 9999, 0, true}, 0, pieces);
  CHECK(since.events.size() == 400);
  CHECK(since.events.front().number == 301);
  CHECK(since.count == 400);
  CHECK(events.answer({3, 0, 0, 0, true}, 0).earliest == 900'000'000);
  // What a rank did before its end is of interest anyway.
  CHECK(whole_answer(events, {4, 0, 500, 0, false}, 0, pieces).events.size() > 400);

  events.record_timeline(0);
  CHECK(records.ring(0).is_exact == 0);
  CHECK(records.ring(0).kept == 512);
  events.record_timeline(std::numeric_limits<std::int64_t>::max());
  CHECK(records.ring(0).kept == 4096);
  CHECK(records.ring(1).is_exact == 1);
}

TEST_CASE("a rank that has written garbage into its ring has no events, and harms nobody") {
  OwnRecords records(2);
  RecordedEvents events(*records, 2);
  records.add_events(1, 3, 5000);
  std::memset(static_cast<void*>(&records.ring(0)), 0xff, EventRing::kHeadBytes);
  CHECK(events.answer({1, 0, 100, 0, false}, 0).total == 0);
  events.record_timeline(512);
  records.ring(0).magic = EventRing::kMagic;
  records.ring(0).capacity = 4096;
  CHECK(events.answer({2, 0, 100, 0, true}, 0).total == 0);
  CHECK(events.answer({2, 1, 100, 0, false}, 1).total == 3);
}

TEST_CASE("an agent says how long ago a rank's last event was, and how fast its steps are") {
  OwnRecords records(2);
  RecordedEvents events(*records, 2);
  RankActivity activity;
  events.add_to(activity, 0, {});
  CHECK(activity.last_event < 0);
  CHECK(activity.steps_per_second < 0);
  const std::int64_t now = nanoseconds_now();
  records.add_events(0, 1, now - 2'000'000'000);
  records.ring(0).steps = 10;
  events.add_to(activity, 0, {});
  CHECK(activity.last_event >= 1.9);
  CHECK(activity.last_event < 60);
  CHECK(activity.steps_per_second < 0);  // one look is no rate
  records.ring(0).steps = 30;
  events.add_to(activity, 0, {});
  CHECK(activity.steps_per_second > 0);
  const double rate = activity.steps_per_second;
  events.add_to(activity, 0, {});  // no step since
  CHECK(activity.steps_per_second == rate);
  records.ring(0).steps = 0;  // a rank can write anything
  records.ring(0).count = ~std::uint64_t{0};
  events.add_to(activity, 0, {});
}

TEST_CASE("what a rank does has lasted since its event began, also if nobody has looked before") {
  constexpr std::int64_t kSecond = 1'000'000'000;
  OwnRecords records(2);
  RecordedEvents events(*records, 2);
  const std::int64_t now = nanoseconds_now();
  Event call = call_event(0, now - 7 * kSecond), left = call_event(0, now - 9 * kSecond);
  call.call = 812;
  left.call = 811;
  call.generation = left.generation = 1;
  call.end = Event::kOpen;
  records.add(0, left);
  for (const auto& [seconds, name] :
       {std::pair<int, std::string_view>{6, "layer7"}, {5, "layer8"}, {4, "layer8"}}) {
    Event tensor;
    tensor.kind = Event::Kind::kTensor;
    tensor.begin = now - seconds * kSecond;
    tensor.generation = 1;
    name.copy(tensor.name.data(), tensor.name.size() - 1);
    records.add(0, tensor);
  }
  records.add(0, call);
  RankActivity first_look;
  SetActivity world;
  world.generation = 1;
  world.call = {"allreduce", 812, true, 0.15};
  SetActivity other = world;
  other.generation = 2;
  first_look.sets = {world, other};
  first_look.tensors = {{1, "layer8", 8, 0.15}, {1, "layer7", 7, 0.15}, {2, "layer7", 7, 0.15}};

  RankActivity activity = first_look;
  events.add_to(activity, 0, {});
  CHECK(activity.sets[0].call.seconds >= 7);
  CHECK(activity.sets[1].call.seconds == 0.15);
  CHECK(activity.tensors[0].name == "layer7");
  CHECK(activity.tensors[0].seconds >= 6);
  CHECK(activity.tensors[1].name == "layer8");
  CHECK(activity.tensors[1].seconds >= 4);
  CHECK(activity.tensors[1].seconds < activity.tensors[0].seconds);
  CHECK(activity.tensors[2].seconds == 0.15);
  CHECK(activity.seconds == activity.last_event);

  activity = first_look;
  activity.sets[0].call = {"allreduce", 811, false, 0.15};
  activity.seconds = 1e6;  // the rank has marked something since
  events.add_to(activity, 0, {});
  CHECK(activity.sets[0].call.seconds >= 8.9);
  CHECK(activity.seconds == 1e6);

  // While the whole job was stopped nobody has watched it, and nobody has waited.
  activity = first_look;
  events.add_to(activity, 0, {0, std::chrono::steady_clock::now()});
  CHECK(activity.sets[0].call.seconds < 7);
  CHECK(activity.seconds < 4);

  // In ddl_init a rank has no events.
  activity = {};
  events.add_to(activity, 1, {now - 5 * kSecond, {}});
  CHECK(activity.seconds >= 5);
  activity = {};
  events.add_to(activity, 1, {});
  CHECK(activity.seconds == 0);
}

TEST_CASE("the events of a rank that has ended are those of then, whenever they are asked for") {
  OwnRecords records(2);
  RecordedEvents events(*records, 2);
  records.add_events(0, 1, 1000);
  events.has_ended(0);
  const std::int64_t ended = events.answer({1, 0, 10, 0, false}, 0).now;
  CHECK(ended > 0);
  CHECK(ended <= nanoseconds_now());
  while (nanoseconds_now() <= ended) continue;
  CHECK(events.answer({2, 0, 10, 0, false}, 0).now == ended);
}

TEST_CASE("an agent says since when a rank has been in ddl_init") {
  OwnRecords own(2);
  RecordedEvents events(*own, 2);
  CHECK(events.answer({1, 0, 10, 0, false}, 0).joining_since == 0);
  own.record(1).phase_since = 4711;
  own.record(1).phase = RankRecord::Phase::kJoining;
  CHECK(events.answer({2, 1, 10, 0, false}, 1).joining_since == 4711);
  own.record(1).phase = RankRecord::Phase::kJoined;
  CHECK(events.answer({3, 1, 10, 0, false}, 1).joining_since == 0);
}

TEST_CASE("a limit on the size of files leaves room for fewer events, or for no records") {
  {
    const FileSizeLimit limit(2 * (RankRecord::kBytes + EventRing::bytes_for(4096)) + RankRecord::kBytes);
    const auto records = RankRecords::create(2, EventRing::kMaxCapacity, 1U << 16, true);
    REQUIRE(records);
    // Half of the events that would just fit, at least, since places begin at multiples of a record.
    CHECK(std::stoul(records->place_of(1).substr(2)) >= EventRing::bytes_for(2048));
    CHECK(records->events(1, 100).events.empty());
  }
  const FileSizeLimit limit(1000);
  const auto records = RankRecords::create(1, 256, 256, false);
  REQUIRE_FALSE(records);
  CHECK_THAT(records.error().message(), Catch::Contains("ulimit -f"));
}
