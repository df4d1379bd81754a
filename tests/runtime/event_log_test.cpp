// What a rank writes into its ring of events, and what a reader finds there meanwhile.
#include "runtime/src/common/event_log.h"

#include <poll.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <functional>
#include <latch>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/deadline.h"
#include "runtime/src/wire/clock_comparison.h"
#include "runtime/support/expect.h"
#include "runtime/support/thread_job.h"
#include "support/catch.h"
#include "timeline/event_ring.h"

using ddl::kernel_now;
using ddl::contract::ClockRecord;
using ddl::contract::Event;
using ddl::contract::EventRing;
using ddl::runtime::ClockComparison;
using ddl::runtime::ClockSkew;
using ddl::runtime::EventLog;
using ddl::runtime::LoggedInterval;
using ddl::runtime::test::ThreadJob;
using ddl::timeline::RingSnapshot;

namespace {

/// A ring with a log that writes it. Behind its bytes there are others, of which the destructor checks that nobody has
/// changed them.
class LoggedRing {
 public:
  explicit LoggedRing(std::uint32_t capacity = 64, std::uint32_t kept = 64, ClockSkew skew = {})
      : LoggedRing(
            capacity, [&](EventRing& ring) { ring.kept = kept; }, skew) {}
  /// garble: writes into the head of a ring of this capacity.
  LoggedRing(std::uint32_t capacity, const std::function<void(EventRing&)>& garble, ClockSkew skew = {})
      : bytes_(EventRing::bytes_for(capacity)),
        memory_(static_cast<std::byte*>(::operator new(bytes_ + kGuard, std::align_val_t{64}))) {
    std::memset(memory_, 0, bytes_);
    std::memset(memory_ + bytes_, kGuardByte, kGuard);
    garble(ddl::timeline::make_ring({memory_, bytes_}, capacity, capacity));
    log_ = std::make_unique<EventLog>(ring(), bytes_ - EventRing::kHeadBytes, nullptr, skew);
  }
  ~LoggedRing() {
    CHECK(std::all_of(memory_ + bytes_, memory_ + bytes_ + kGuard,
                      [](std::byte byte) { return byte == std::byte{kGuardByte}; }));
    log_.reset();
    ::operator delete(memory_, std::align_val_t{64});
  }
  LoggedRing(const LoggedRing&) = delete;
  LoggedRing& operator=(const LoggedRing&) = delete;

  EventRing& ring() { return *reinterpret_cast<EventRing*>(memory_); }
  EventLog& operator*() { return *log_; }
  EventLog* operator->() { return log_.get(); }
  RingSnapshot read(std::size_t latest = EventRing::kMaxCapacity) {
    return ddl::timeline::read_ring(ring(), {memory_, bytes_}, latest);
  }
  /// The event of this number; one of kind kNone if it is not there.
  Event find(std::uint64_t number) {
    for (const Event& event : read().events)
      if (event.number == number) return event;
    return {};
  }

 private:
  static constexpr std::size_t kGuard = 1 << 16;
  static constexpr unsigned char kGuardByte = 0x5A;
  std::size_t bytes_;
  std::byte* memory_;
  std::unique_ptr<EventLog> log_;
};

Event of_kind(Event::Kind kind) {
  Event event;
  event.kind = kind;
  return event;
}

std::string name_in(const Event& event) {
  return {event.name.data(), ::strnlen(event.name.data(), event.name.size())};
}

bool is_readable(int fd) {
  pollfd entry{fd, POLLIN, 0};
  return ::poll(&entry, 1, 0) == 1;
}

}  // namespace

TEST_CASE("an event has what was said when it began, and its end when that has come") {
  LoggedRing ring;
  Event tensor = of_kind(Event::Kind::kTensor);
  tensor.bytes = 4096;
  tensor.call_kind = 1;
  tensor.op = 2;
  tensor.dtype = 7;
  tensor.generation = 9;
  const std::uint64_t number = ring->begin(tensor, "layer7");
  CHECK(number == 1);
  Event seen = ring.find(number);
  CHECK(seen.kind == Event::Kind::kTensor);
  CHECK(name_in(seen) == "layer7");
  CHECK(seen.begin > 0);
  CHECK(seen.end == Event::kOpen);
  CHECK(seen.thread != 0);
  CHECK(seen.bytes == 4096);
  CHECK(seen.dtype == 7);
  CHECK(seen.generation == 9);
  ring->start(number, seen.begin + 5);
  ring->end(number, seen.begin + 20, DDL_ERROR_PEER_LOST, 3);
  seen = ring.find(number);
  CHECK(seen.started == seen.begin + 5);
  CHECK(seen.end == seen.begin + 20);
  CHECK(seen.status == DDL_ERROR_PEER_LOST);
  CHECK(seen.algorithm == 3);
  // They share a word with these.
  CHECK(seen.kind == Event::Kind::kTensor);
  CHECK(seen.call_kind == 1);
  CHECK(seen.op == 2);
  CHECK(seen.dtype == 7);

  ring->moment(of_kind(Event::Kind::kMark), "here");
  const Event mark = ring.find(2);
  CHECK(mark.begin == mark.end);
  CHECK(name_in(mark) == "here");
  ring->end_step(9);
  CHECK(ring.find(3).kind == Event::Kind::kStep);
  CHECK(ring.find(3).generation == 9);
  CHECK(ring.read().steps == 1);
  CHECK(ring.ring().first_step_end > 0);
  CHECK(ring.ring().last_step_end == ring.ring().first_step_end);
  ring->end_step(9);
  CHECK(ring.ring().last_step_end > ring.ring().first_step_end);
  Event given = of_kind(Event::Kind::kCall);
  given.begin = 4711;
  CHECK(ring.find(ring->begin(given)).begin == 4711);
}

TEST_CASE("a logged interval ends when it is destroyed, with what was set") {
  LoggedRing ring;
  {
    LoggedInterval call(&*ring, of_kind(Event::Kind::kCall));
    CHECK(ring.find(1).end == Event::kOpen);
    call.set(DDL_ERROR_TIMEOUT, 2);
  }
  CHECK(ring.find(1).end >= ring.find(1).begin);
  CHECK(ring.find(1).status == DDL_ERROR_TIMEOUT);
  CHECK(ring.find(1).algorithm == 2);
  LoggedInterval none(nullptr, of_kind(Event::Kind::kCall));
  none.set(DDL_OK);
}

TEST_CASE("a name is cut at 60 bytes, and an event without one does not show that of an earlier event") {
  LoggedRing ring(2, 2);
  const std::string name(100, 'n');
  (void)ring->begin(of_kind(Event::Kind::kRange), name);
  (void)ring->begin(of_kind(Event::Kind::kTensor), name.substr(0, 60));
  CHECK(name_in(ring.find(1)) == name.substr(0, Event::kNameBytes));
  CHECK(name_in(ring.find(2)) == name.substr(0, 60));
  (void)ring->begin(of_kind(Event::Kind::kCall), "ignored");
  CHECK(name_in(ring.find(3)).empty());
  Event batch = of_kind(Event::Kind::kBatch);
  batch.tensors = 3;
  (void)ring->begin(batch, "ab");
  CHECK(name_in(ring.find(4)) == "ab");
  CHECK(ring.find(4).tensors == 3);
  (void)ring->begin(of_kind(Event::Kind::kMark));
  (void)ring->begin(of_kind(Event::Kind::kAgreement));
  CHECK(name_in(ring.find(5)).empty());
  CHECK(ring.find(6).tensors == 0);
}

TEST_CASE("the latest events are kept, and an event that was overwritten is not ended") {
  LoggedRing ring(64, 8);
  for (int i = 0; i < 20; ++i) (void)ring->begin(of_kind(Event::Kind::kCall));
  RingSnapshot now = ring.read();
  CHECK(now.count == 20);
  REQUIRE(now.events.size() == 8);
  CHECK(now.events.front().number == 13);
  ring->start(12, 1);
  ring->end(12, ring->now(), DDL_ERROR_INTERNAL);
  CHECK(ring.read() == now);
  ring->end(13, ring->now(), DDL_OK);
  CHECK(ring.find(13).end != Event::kOpen);
}

TEST_CASE("more events may be kept while a rank runs, and none that it has ended is shown as open") {
  for (const int before : {1, 3, 8, 9, 20, 40}) {
    CAPTURE(before);
    LoggedRing ring(64, 8);
    std::vector<std::uint64_t> open;
    for (int i = 0; i < before; ++i) open.push_back(ring->begin(of_kind(Event::Kind::kCall)));
    CHECK_FALSE(ring->is_exact());
    ring->record(40);  // rounded down to a power of two
    CHECK(ring->is_exact());
    CHECK(ring.ring().kept == 32);
    for (const std::uint64_t number : open) ring->end(number, ring->now(), DDL_OK);
    for (const Event& event : ring.read().events) CHECK(event.end != Event::kOpen);
    for (int i = 0; i < 32; ++i) (void)ring->begin(of_kind(Event::Kind::kCall));
    CHECK(ring.read().events.size() == 32);
    ring->stop_recording();
    CHECK_FALSE(ring->is_exact());
    ring->record(4);  // never fewer
    CHECK(ring.ring().kept == 32);
    ring->record(~std::uint32_t{0});
    CHECK(ring.ring().kept == 64);
    ring->record(0);
    CHECK(ring.ring().kept == 64);
  }
}

TEST_CASE("no event ends before it began, when times become exact and when they no longer are") {
  LoggedRing ring;
  for (int i = 0; i < 100; ++i) {
    ring.ring().is_exact = 1;
    const std::uint64_t exact = ring->begin(of_kind(Event::Kind::kCall));
    ring.ring().is_exact = 0;
    ring->end(exact, ring->now(), DDL_OK);
    const std::uint64_t tick = ring->begin(of_kind(Event::Kind::kCall));
    ring.ring().is_exact = 1;
    ring->end(tick, ring->now(), DDL_OK);
    for (const std::uint64_t number : {exact, tick}) CHECK(ring.find(number).end >= ring.find(number).begin);
  }
  // A tick is not in the future, and not long ago.
  ring.ring().is_exact = 0;
  const std::int64_t now = ring->now(), exact = ring->exact_now();
  CHECK(now <= exact);
  constexpr std::int64_t kLong = 1'000'000'000;
  CHECK(exact - now < kLong);
  CHECK(kernel_now() >= exact);
}

namespace {

/// Threads write into the ring, each with fields and names of its own, while this one reads. Returns what is wrong.
/// The first thread has more events kept when it is half done.
std::vector<std::string> read_while_written(LoggedRing& ring, int threads, int events, std::uint32_t kept) {
  std::latch begun(threads + 1);
  std::atomic<int> writing{threads};
  std::vector<std::thread> all;
  for (int thread = 0; thread < threads; ++thread) {
    all.emplace_back([&, thread] {
      const auto own = static_cast<std::uint64_t>(thread) + 1;
      const std::string name(own * 10, static_cast<char>('a' + thread));
      begun.arrive_and_wait();
      for (int i = 0; i < events; ++i) {
        Event event = of_kind(i % 2 == 0 ? Event::Kind::kTensor : Event::Kind::kCall);
        event.bytes = event.call = own;
        event.generation = static_cast<std::uint32_t>(own);
        const std::uint64_t number = ring->begin(event, name);
        if (i % 3 != 0) ring->end(number, ring->now(), DDL_OK, static_cast<std::uint8_t>(own));
        if (i == events / 2 && thread == 0) ring->record(kept);
      }
      --writing;
    });
  }
  std::vector<std::string> wrong;
  const auto expect_that = [&](bool holds, const char* what) {
    if (!holds && wrong.size() < 5) wrong.emplace_back(what);
  };
  std::uint64_t last = 0;
  begun.arrive_and_wait();
  for (bool is_last = false; !is_last;) {
    is_last = writing == 0;
    constexpr std::size_t kSome = 100;
    const RingSnapshot now = ring.read(is_last ? EventRing::kMaxCapacity : kSome);
    expect_that(now.count >= last, "the count only rises");
    last = now.count;
    std::uint64_t before = 0;
    for (const Event& event : now.events) {
      expect_that(event.number > before, "each event is there once, in their order");
      before = event.number;
      expect_that(event.call == event.bytes && event.generation == event.bytes,
                  "all fields are of one event");
      if (event.kind == Event::Kind::kTensor)
        expect_that(name_in(event) == std::string(event.bytes * 10, static_cast<char>('a' + event.bytes - 1)),
                    "so is its name");
      expect_that(event.end == Event::kOpen || event.algorithm == event.bytes, "so is its end");
    }
    if (is_last) expect_that(now.events.size() == kept, "at the end all are there");
  }
  for (std::thread& thread : all) thread.join();
  expect_that(last == static_cast<std::uint64_t>(threads) * static_cast<std::uint64_t>(events),
              "all are counted");
  return wrong;
}

}  // namespace

TEST_CASE("several threads write events while another reads") {
  // With room for all: a thread that gets no CPU inside begin() is not overtaken by a whole round of events.
  LoggedRing ring(8192, 8192);
  CHECK(read_while_written(ring, 4, 2048, 8192) == std::vector<std::string>{});
}

TEST_CASE("a thread writes over its earlier events, and more of them are kept later, while another reads") {
  LoggedRing ring(256, 64);
  CHECK(read_while_written(ring, 1, 20'000, 256) == std::vector<std::string>{});
}

TEST_CASE(
    "when there is no room for more clock samples, every second one is dropped, and a reader finds them in "
    "order") {
  LoggedRing ring;
  constexpr std::int64_t kComparisons = 5000;
  std::atomic<bool> writes{true};
  std::thread writer([&] {
    for (std::int64_t i = 1; i <= kComparisons; ++i) ring->add_clock_sample(3, {1000 * i, 7 * i, i});
    writes = false;
  });
  int found = 0;
  std::vector<std::string> wrong;
  for (bool is_last = false; !is_last;) {
    is_last = !writes;
    const RingSnapshot now = ring.read();
    found = static_cast<int>(now.samples.size());
    for (const auto& sample : now.samples)
      if (sample.at != 1000 * sample.bound || sample.offset != 7 * sample.bound)
        wrong.emplace_back("a mixed sample");
  }
  writer.join();
  CHECK(wrong.empty());
  CHECK(found > static_cast<int>(ClockRecord::kSamples) / 2);
  CHECK(ring.read().clock_peer == 3);
  CHECK(ring.read().samples.front().at == 1000);
  CHECK(ring.read().samples.back().at == 1000 * kComparisons);
}

TEST_CASE("the 65th clock sample drops every second one before it") {
  LoggedRing ring;
  for (std::int64_t i = 0; i < 64; ++i) ring->add_clock_sample(0, {i, 0, 0});
  CHECK(ring.read().samples.size() == 64);
  ring->add_clock_sample(0, {64, 0, 0});
  const auto samples = ring.read().samples;
  REQUIRE(samples.size() == 33);
  for (std::int64_t i = 0; i < 33; ++i) CHECK(samples[static_cast<std::size_t>(i)].at == 2 * i);
}

TEST_CASE("a comparison of clocks is due at the first event of a timeline, and then not for a while") {
  LoggedRing ring;
  const int due = ring->comparison_due();
  REQUIRE(due >= 0);
  CHECK(ring->comparison_due() == due);
  (void)ring->begin(of_kind(Event::Kind::kCall));
  CHECK_FALSE(is_readable(due));  // no timeline is recorded
  ring->record(64);
  CHECK_FALSE(is_readable(due));
  const auto begin_at = [&](std::int64_t time) {
    Event event = of_kind(Event::Kind::kCall);
    event.begin = time;
    (void)ring->begin(event);
    const bool is_due = is_readable(due);
    ring->take_comparison_due();
    CHECK_FALSE(is_readable(due));
    return is_due;
  };
  constexpr std::int64_t kSecond = 1'000'000'000;
  const std::int64_t first = 100 * kSecond;
  CHECK(begin_at(first));
  CHECK_FALSE(begin_at(first));
  CHECK_FALSE(begin_at(first + kSecond / 5));
  CHECK(begin_at(first + kSecond / 4));
  CHECK_FALSE(begin_at(first + kSecond / 2));
  CHECK(begin_at(first + kSecond * 3 / 4));
  // The pauses become no longer than ten seconds.
  std::int64_t now = first + kSecond;
  for (int i = 0; i < 20; ++i) {
    now += 11 * kSecond;
    CHECK(begin_at(now));
  }
  CHECK_FALSE(begin_at(now + 9 * kSecond));
  ring->stop_recording();
  CHECK_FALSE(begin_at(now + 100 * kSecond));
}

TEST_CASE("whatever a launcher has written into a ring's head, a rank writes no other memory") {
  const auto use = [](LoggedRing& ring) {
    std::vector<std::uint64_t> numbers;
    for (int i = 0; i < 40; ++i) numbers.push_back(ring->begin(of_kind(Event::Kind::kTensor), "x"));
    ring->record(~std::uint32_t{0});
    for (const std::uint64_t number : numbers) {
      CHECK(number != 0);
      ring->start(number, 5);
      ring->end(number, ring->now(), DDL_OK, 1);
    }
    for (int i = 0; i < 40; ++i) ring->moment(of_kind(Event::Kind::kMark), "y");
    for (std::int64_t i = 0; i < 200; ++i) ring->add_clock_sample(1, {i, 0, 0});
    (void)ring.read();
  };
  constexpr std::uint32_t kAll = ~std::uint32_t{0};
  for (const std::uint32_t capacity : {0U, 1U, 3U, 16U, 17U, 1U << 20, 1U << 31, kAll}) {
    for (const std::uint32_t kept : {0U, 1U, 3U, 16U, 17U, 1U << 20, 1U << 31, kAll}) {
      for (const std::uint32_t count : {0U, kAll}) {
        CAPTURE(capacity, kept, count);
        LoggedRing ring(16, [&](EventRing& head) {
          head.capacity = capacity;
          head.kept = kept;
          head.clock.count = count;
          head.clock.version = count;
        });
        use(ring);
        // Also if that comes later.
        ring.ring().capacity = kept;
        ring.ring().kept = capacity;
        use(ring);
      }
    }
  }
}

TEST_CASE("a comparison finds by how much two clocks differ, within its bound") {
  for (const double seconds : {0.0, 5.0, -3.5}) {
    LoggedRing own(64, 64, {seconds, 100}), peer(64, 64, {1, -50});
    own->record(64);
    ClockComparison comparison(*own, 4);
    int round_trips = 1;
    for (std::int64_t asked = comparison.begin(); comparison.add_answer(asked, peer->exact_now());
         ++round_trips)
      asked = comparison.next();
    CHECK(round_trips == 16);
    const RingSnapshot now = own.read();
    CHECK(now.clock_peer == 4);
    REQUIRE(now.samples.size() == 1);
    const auto& sample = now.samples[0];
    const auto kernel = static_cast<double>(kernel_now());
    const double expected = (1 - seconds) * 1e9 - kernel * 150e-6;
    // Between the comparison and now the clocks have drifted by a little.
    constexpr double kDrift = 1e6;
    CHECK(std::abs(static_cast<double>(sample.offset) - expected) <=
          static_cast<double>(sample.bound) + kDrift);
    CHECK(sample.bound >= 0);
    CHECK(sample.at <= own->exact_now());
  }
}

TEST_CASE("answers to questions that were not asked are no comparison") {
  LoggedRing own;
  ClockComparison comparison(*own, 4);
  CHECK_FALSE(comparison.add_answer(0, 17));
  const std::int64_t asked = comparison.begin();
  CHECK_FALSE(comparison.add_answer(asked + 1, 17));
  CHECK(comparison.add_answer(asked, 17));
  CHECK_FALSE(comparison.add_answer(asked, 17));  // twice
  CHECK_FALSE(comparison.add_answer(0, 17));
  CHECK(own.read().samples.empty());
}

TEST_CASE("marks and ranges are accepted where nothing is recorded, and refused without a context or name") {
  using ddl::conformance::expect;
  using ddl::conformance::expect_ok;
  CHECK(ddl_mark(nullptr, "x") == DDL_ERROR_INVALID_ARGUMENT);
  std::uint64_t range = 7;
  CHECK(ddl_range_begin(nullptr, "x", &range) == DDL_ERROR_INVALID_ARGUMENT);
  CHECK(ddl_range_end(nullptr, 0) == DDL_ERROR_INVALID_ARGUMENT);
  ThreadJob job;
  job.ranks = 2;
  job.run([](ddl_context*& context) {
    expect_ok(ddl_mark(context, "x"), "mark");
    expect(ddl_mark(context, nullptr) == DDL_ERROR_INVALID_ARGUMENT, "a mark without a name");
    std::uint64_t number = 7;
    expect_ok(ddl_range_begin(context, "x", &number), "range_begin");
    expect(number == 0, "no number");
    expect(ddl_range_begin(context, nullptr, &number) == DDL_ERROR_INVALID_ARGUMENT,
           "a range without a name");
    expect(ddl_range_begin(context, "x", nullptr) == DDL_ERROR_INVALID_ARGUMENT, "a range without a place");
    for (const std::uint64_t end : {std::uint64_t{0}, std::uint64_t{1}, ~std::uint64_t{0}})
      expect_ok(ddl_range_end(context, end), "range_end");
  });
}
