#include "timeline/event_ring.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "support/catch.h"

using ddl::contract::ClockSample;
using ddl::contract::Event;
using ddl::contract::EventRing;
using ddl::timeline::find_ring;
using ddl::timeline::make_ring;
using ddl::timeline::read_ring;
using ddl::timeline::ring_capacity;

namespace {

constexpr std::size_t kAll = std::numeric_limits<std::size_t>::max();

/// A ring in memory of its own, and a writer as a rank has one.
class TestRing {
 public:
  explicit TestRing(std::uint32_t capacity, std::uint32_t kept = 0)
      : size_(EventRing::bytes_for(capacity)),
        bytes_(static_cast<std::byte*>(std::aligned_alloc(64, size_))) {
    std::memset(bytes_.get(), 0, size_);
    ring = &make_ring(memory(), capacity, kept == 0 ? capacity : kept);
  }
  std::span<std::byte> memory() const { return {bytes_.get(), size_}; }
  std::byte* place(std::uint64_t index) const {
    return bytes_.get() + EventRing::kHeadBytes + index * sizeof(Event);
  }

  void write(const Event& event) const {
    const auto words = std::bit_cast<std::array<std::uint64_t, sizeof(Event) / 8>>(event);
    auto* const to = reinterpret_cast<std::uint64_t*>(place((event.number - 1) & (ring->kept - 1)));
    std::atomic_ref(to[0]).store(0, std::memory_order_relaxed);
    for (std::size_t i = 1; i < words.size(); ++i)
      std::atomic_ref(to[i]).store(words[i], std::memory_order_release);  // after the zero
    std::atomic_ref(to[0]).store(words[0], std::memory_order_release);
    ring->count.store(event.number, std::memory_order_release);
  }
  ddl::timeline::RingSnapshot read(std::size_t latest = kAll) const {
    return read_ring(*ring, memory(), latest);
  }

  EventRing* ring;

 private:
  struct Free {
    void operator()(std::byte* bytes) const { std::free(bytes); }
  };
  std::size_t size_;
  std::unique_ptr<std::byte, Free> bytes_;
};

/// All fields say the number.
Event numbered(std::uint64_t number) {
  Event event;
  event.number = number;
  event.begin = static_cast<std::int64_t>(number);
  event.end = static_cast<std::int64_t>(number);
  event.bytes = event.call = number;
  event.generation = event.thread = event.tensors = static_cast<std::uint32_t>(number);
  event.kind = Event::Kind::kBatch;
  std::memcpy(event.name.data(), std::to_string(number).c_str(), std::to_string(number).size());
  return event;
}

std::vector<std::uint64_t> numbers_of(const ddl::timeline::RingSnapshot& snapshot) {
  std::vector<std::uint64_t> numbers;
  for (const Event& event : snapshot.events) numbers.push_back(event.number);
  return numbers;
}

}  // namespace

TEST_CASE("a ring gives back its latest events in order") {
  const TestRing ring(8);
  CHECK(ring.read().events.empty());
  for (std::uint64_t i = 1; i <= 5; ++i) ring.write(numbered(i));
  CHECK(numbers_of(ring.read()) == std::vector<std::uint64_t>{1, 2, 3, 4, 5});
  CHECK(numbers_of(ring.read(2)) == std::vector<std::uint64_t>{4, 5});
  CHECK(ring.read(0).events.empty());
  for (std::uint64_t i = 6; i <= 21; ++i) ring.write(numbered(i));
  const auto snapshot = ring.read();
  CHECK(numbers_of(snapshot) == std::vector<std::uint64_t>{14, 15, 16, 17, 18, 19, 20, 21});
  CHECK(snapshot.events.front() == numbered(14));
  CHECK(snapshot.count == 21);
  CHECK(snapshot.clock_peer == -1);
}

TEST_CASE("when a ring keeps more events, the earlier ones that are at another place are lost") {
  const TestRing ring(16, 4);
  for (std::uint64_t i = 1; i <= 6; ++i) ring.write(numbered(i));
  CHECK(numbers_of(ring.read()) == std::vector<std::uint64_t>{3, 4, 5, 6});
  ring.ring->kept = 16;
  CHECK(numbers_of(ring.read()) == std::vector<std::uint64_t>{3, 4});
  for (std::uint64_t i = 7; i <= 12; ++i) ring.write(numbered(i));
  CHECK(numbers_of(ring.read()) == std::vector<std::uint64_t>{3, 4, 7, 8, 9, 10, 11, 12});
}

TEST_CASE("events that are being written or are invalid are omitted") {
  const TestRing ring(16);
  for (std::uint64_t i = 1; i <= 8; ++i) ring.write(numbered(i));
  const std::uint64_t zero = 0;
  std::memcpy(ring.place(1), &zero, sizeof zero);  // event 2 is being written
  const auto change = [&](std::uint64_t number, auto&& how) {
    Event event = numbered(number);
    how(event);
    std::memcpy(ring.place(number - 1), &event, sizeof event);
  };
  change(3, [](Event& event) { event.kind = Event::Kind::kNone; });
  change(4, [](Event& event) { event.kind = static_cast<Event::Kind>(200); });
  change(5, [](Event& event) { event.begin = 0; });
  change(6, [](Event& event) { event.end = event.begin - 1; });
  change(7, [](Event& event) { event.started = -1; });
  change(8, [](Event& event) {
    event.end = Event::kOpen;
    event.name = {'a', '\0', 'b'};
  });
  const auto snapshot = ring.read();
  CHECK(numbers_of(snapshot) == std::vector<std::uint64_t>{1, 8});
  CHECK(snapshot.events.back().name[2] == '\0');
  CHECK(snapshot.count == 8);
}

TEST_CASE("numbers in the head of a ring that cannot be are no harm") {
  const TestRing ring(4);
  for (std::uint64_t i = 1; i <= 3; ++i) ring.write(numbered(i));
  for (const std::uint64_t count : {std::uint64_t{0}, std::uint64_t{1} << 40, ~std::uint64_t{0}}) {
    ring.ring->count = count;
    CHECK(ring.read().events.empty());
    CHECK(ring.read().count <= std::uint64_t{1} << 62);
  }
  ring.ring->count = 3;
  for (const std::uint32_t kept : {0U, 3U, 1000U, ~0U}) {
    ring.ring->kept = kept;
    CHECK(ring.read().events.size() <= 3);
  }
  ring.ring->kept = 4;
  for (const std::uint32_t capacity : {0U, 3U, 1U << 20, ~0U}) {
    ring.ring->capacity = capacity;
    CHECK(ring.read().events.size() <= 3);
    if (capacity != 0) CHECK(find_ring(ring.memory()) == nullptr);
  }
  CHECK(find_ring(ring.memory().first(100)) == nullptr);
  ring.ring->capacity = 4;
  CHECK(find_ring(ring.memory()) == ring.ring);
  CHECK(find_ring(ring.memory().first(EventRing::bytes_for(4) - 1)) == nullptr);
  ring.ring->magic = 1;
  CHECK(find_ring(ring.memory()) == nullptr);
}

TEST_CASE("a ring of random bytes is read without harm") {
  std::mt19937_64 random(7);
  for (int i = 0; i < 300; ++i) {
    const TestRing ring(16);
    for (std::size_t at = 0; at < ring.memory().size(); at += 8) {
      const std::uint64_t bits = random();
      std::memcpy(ring.memory().data() + at, &bits, 8);
    }
    if (i % 2 == 0) {  // numbers that the reader looks for
      ring.ring->count = 1 + random() % 40;
      ring.ring->kept = 16;
      for (std::uint64_t number = 1; number <= ring.ring->count; ++number)
        std::memcpy(ring.place((number - 1) & 15), &number, sizeof number);
    }
    const auto snapshot = ring.read();
    CHECK(snapshot.events.size() <= 16);
    for (const Event& event : snapshot.events) CHECK(event.kind <= Event::kLastKind);
    CHECK(snapshot.clock_peer >= -1);
  }
}

TEST_CASE("samples of a clock are read only if they are whole and in order") {
  const TestRing ring(1);
  auto& clock = ring.ring->clock;
  clock.peer = 1 + 6;
  const std::array<std::int64_t, 6> words{100, -5, 2, 200, -6, 3};
  for (std::size_t i = 0; i < words.size(); ++i) clock.samples[i] = words[i];
  clock.count = 2;
  CHECK(ring.read().clock_peer == 6);
  CHECK(ring.read().samples == std::vector<ClockSample>{{100, -5, 2}, {200, -6, 3}});
  clock.version = 1;
  CHECK(ring.read().samples.empty());
  clock.version = 2;
  clock.count = ~0U;  // more than there are: zeros follow, which are not in order
  CHECK(ring.read().samples.empty());
  clock.count = 2;
  clock.samples[2] = -1;
  CHECK(ring.read().samples.empty());
  clock.samples[2] = 2;
  clock.samples[3] = 100;
  CHECK(ring.read().samples.empty());
  clock.peer = std::numeric_limits<std::int32_t>::min();
  CHECK(ring.read().clock_peer == -1);
}

TEST_CASE("events that are read while a rank writes are whole") {
  const TestRing ring(8);
  std::atomic<bool> is_over{false};
  std::thread writer([&] {
    for (std::uint64_t i = 1; !is_over; ++i) ring.write(numbered(i));
  });
  std::size_t seen = 0;
  bool are_whole = true;
  while (seen < 20000) {
    const auto snapshot = ring.read();
    for (const Event& event : snapshot.events) are_whole = are_whole && event == numbered(event.number);
    const auto numbers = numbers_of(snapshot);
    are_whole = are_whole && std::is_sorted(numbers.begin(), numbers.end());
    seen += snapshot.events.size();
  }
  is_over = true;
  writer.join();
  CHECK(are_whole);
}

TEST_CASE("the capacity of a ring is a power of two") {
  CHECK(ring_capacity(0) == 1);
  CHECK(ring_capacity(1) == 1);
  CHECK(ring_capacity(1000) == 512);
  CHECK(ring_capacity(~std::uint64_t{0}) == EventRing::kMaxCapacity);
}
