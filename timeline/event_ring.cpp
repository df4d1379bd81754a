#include "timeline/event_ring.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <new>

#include "base/error.h"

namespace ddl::timeline {
namespace {

using contract::ClockRecord;
using contract::ClockSample;
using contract::Event;
using contract::EventRing;

constexpr std::size_t kWords = sizeof(Event) / sizeof(std::uint64_t);
using Words = std::array<std::uint64_t, kWords>;

/// The place of an event. Its words are accessed as atomics, since another process writes them.
std::uint64_t* place(const EventRing& ring, std::uint64_t index) {
  const auto* const head = reinterpret_cast<const std::byte*>(&ring);
  return reinterpret_cast<std::uint64_t*>(
      const_cast<std::byte*>(head + EventRing::kHeadBytes + index * sizeof(Event)));
}

/// The event of this number; false if it is not there, or was changed while it was copied.
bool read_event(std::uint64_t* words, std::uint64_t number, Event& event) {
  if (std::atomic_ref(words[0]).load(std::memory_order_acquire) != number) return false;
  Words copy;
  copy[0] = number;
  for (std::size_t i = 1; i < kWords; ++i)
    copy[i] = std::atomic_ref(words[i]).load(std::memory_order_acquire);
  if (std::atomic_ref(words[0]).load(std::memory_order_relaxed) != number) return false;
  std::memcpy(static_cast<void*>(&event), copy.data(), sizeof event);
  return true;
}

/// What a rank writes itself: any bits.
bool is_valid(const Event& event) {
  if (event.kind == Event::Kind::kNone || event.kind > Event::kLastKind) return false;
  return event.begin > 0 && event.started >= 0 && (event.end == Event::kOpen || event.end >= event.begin);
}

void end_name(Event& event) {
  if (!Event::has_name(event.kind)) {
    event.name = {};
    event.tensors = 0;
  }
  const auto end = std::find(event.name.begin(), event.name.end(), '\0');
  std::fill(end, event.name.end(), '\0');
}

std::vector<ClockSample> read_samples(const ClockRecord& clock) {
  constexpr int kTries = 100;
  for (int i = 0; i < kTries; ++i) {
    const std::uint32_t version = clock.version.load(std::memory_order_acquire);
    const std::size_t count = std::min<std::size_t>(clock.count.load(), ClockRecord::kSamples);
    std::vector<ClockSample> samples(count);
    for (std::size_t k = 0; k < count; ++k)
      samples[k] = {clock.samples[3 * k].load(), clock.samples[3 * k + 1].load(),
                    clock.samples[3 * k + 2].load()};
    if (version % 2 != 0 || clock.version.load(std::memory_order_acquire) != version) continue;
    // A rank may have written anything; an order that does not hold cannot be interpolated.
    const auto is_wrong = [](const ClockSample& a, const ClockSample& b) { return a.at >= b.at; };
    if (std::adjacent_find(samples.begin(), samples.end(), is_wrong) != samples.end()) return {};
    if (std::any_of(samples.begin(), samples.end(), [](const ClockSample& one) { return one.bound < 0; }))
      return {};
    return samples;
  }
  return {};
}

}  // namespace

std::uint32_t ring_capacity(std::uint64_t n) {
  return static_cast<std::uint32_t>(std::bit_floor(std::clamp<std::uint64_t>(n, 1, EventRing::kMaxCapacity)));
}

std::uint32_t events_of_rank(std::uint64_t file_bytes, std::size_t ranks) {
  constexpr std::uint64_t kBytesOfEvent = 200;  // in the file, about
  const std::uint64_t events = file_bytes / kBytesOfEvent / std::max<std::size_t>(ranks, 1);
  return std::max(ring_capacity(events), EventRing::kUsuallyKept);
}

EventRing& make_ring(std::span<std::byte> memory, std::uint32_t capacity, std::uint32_t kept) {
  DDL_CHECK(std::has_single_bit(capacity) && std::has_single_bit(kept) && kept <= capacity &&
                memory.size() >= EventRing::bytes_for(capacity),
            std::to_string(capacity));
  auto* const ring = new (memory.data()) EventRing;
  ring->capacity = capacity;
  ring->kept = kept;
  return *ring;
}

const EventRing* find_ring(std::span<const std::byte> memory) {
  if (memory.size() < EventRing::kHeadBytes) return nullptr;
  const auto* const ring = reinterpret_cast<const EventRing*>(memory.data());
  if (ring->magic != EventRing::kMagic || !std::has_single_bit(ring->capacity)) return nullptr;
  return memory.size() >= EventRing::bytes_for(ring->capacity) ? ring : nullptr;
}

RingSnapshot read_ring(const EventRing& ring, std::span<const std::byte> memory, std::size_t latest) {
  RingSnapshot snapshot;
  constexpr std::uint64_t kMaxCount = std::uint64_t{1} << 62;  // no rank gets so far
  snapshot.count = std::min(ring.count.load(std::memory_order_acquire), kMaxCount);
  snapshot.steps = ring.steps;
  snapshot.clock_peer = std::max(ring.clock.peer.load(), 0) - 1;
  snapshot.samples = read_samples(ring.clock);
  // The rank may change these numbers: what matters is that the places lie in the memory.
  const std::uint64_t room = (memory.size() - EventRing::kHeadBytes) / sizeof(Event);
  const std::uint64_t capacity = std::bit_floor(std::clamp<std::uint64_t>(ring.capacity, 1, room));
  const std::uint64_t kept =
      std::min<std::uint64_t>(std::bit_floor(std::max(ring.kept.load(), 1U)), capacity);
  const std::uint64_t wanted = std::min<std::uint64_t>({latest, kept, snapshot.count});
  snapshot.events.reserve(wanted);
  for (std::uint64_t number = snapshot.count - wanted + 1; number <= snapshot.count; ++number) {
    Event event;
    // When more events are kept than before, the earlier ones are where they were.
    if (!read_event(place(ring, (number - 1) & (kept - 1)), number, event) || !is_valid(event)) continue;
    end_name(event);
    snapshot.events.push_back(event);
  }
  return snapshot;
}

}  // namespace ddl::timeline
