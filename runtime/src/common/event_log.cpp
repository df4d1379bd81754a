#include "runtime/src/common/event_log.h"

#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstring>

namespace ddl::runtime {
namespace {

using contract::Event;
using contract::EventRing;

constexpr std::size_t kWords = sizeof(Event) / sizeof(std::uint64_t);
/// The words of the first line, and those that change when an event goes on.
constexpr std::size_t kPlainWords = offsetof(Event, name) / sizeof(std::uint64_t);
constexpr std::size_t kNumber = 0, kBegin = offsetof(Event, begin) / 8,
                      kStarted = offsetof(Event, started) / 8, kEnd = offsetof(Event, end) / 8,
                      kLast = offsetof(Event, kind) / 8;
using Words = std::array<std::uint64_t, kWords>;
static_assert(kLast == kPlainWords - 1);

void store(std::uint64_t* word, std::uint64_t value) {
  std::atomic_ref(*word).store(value, std::memory_order_release);
}

std::uint32_t thread_number() {
  static thread_local const auto kThread = static_cast<std::uint32_t>(::gettid());
  return kThread;
}

}  // namespace

EventLog::EventLog(EventRing& ring, std::size_t bytes, std::shared_ptr<void> owner, ClockSkew skew)
    : ring_(ring),
      capacity_(static_cast<std::uint32_t>(std::bit_floor(std::min<std::size_t>(
          {bytes / sizeof(Event), std::max(ring.capacity, 1U), EventRing::kMaxCapacity})))),
      owner_(std::move(owner)),
      skew_(skew) {}

std::int64_t EventLog::clock(bool is_exact) const {
  constexpr std::int64_t kNanoseconds = 1'000'000'000;
  timespec time{};
  ::clock_gettime(is_exact ? CLOCK_MONOTONIC : CLOCK_MONOTONIC_COARSE, &time);
  const std::int64_t now = time.tv_sec * kNanoseconds + time.tv_nsec;
  if (skew_.seconds == 0 && skew_.ppm == 0) return now;
  return now + static_cast<std::int64_t>(skew_.seconds * kNanoseconds +
                                         static_cast<double>(now) * skew_.ppm * 1e-6);
}

std::uint64_t* EventLog::place(std::uint64_t number) const {
  // The launcher changes kept while this runs, and may have written anything.
  const std::uint32_t kept = ring_.kept.load(std::memory_order_relaxed);
  const std::uint64_t index = (number - 1) & (kept - 1) & (capacity_ - 1);
  return reinterpret_cast<std::uint64_t*>(reinterpret_cast<std::byte*>(&ring_) + EventRing::kHeadBytes +
                                          index * sizeof(Event));
}

void EventLog::record(std::uint32_t events) {
  const std::uint32_t kept = std::min(std::bit_floor(std::max(events, 1U)), capacity_);
  if (kept > ring_.kept) ring_.kept = kept;
  ring_.is_exact = 1;
}

std::uint64_t EventLog::begin(Event event, std::string_view name) {
  if (event.begin == 0) event.begin = now();
  event.thread = thread_number();
  const bool has_name = Event::has_name(event.kind);
  if (has_name) std::copy_n(name.begin(), std::min(name.size(), event.name.size()), event.name.begin());
  Words words;
  std::memcpy(words.data(), &event, sizeof event);
  const std::uint64_t number = ring_.count.fetch_add(1, std::memory_order_relaxed) + 1;
  std::uint64_t* const to = place(number);
  store(&to[kNumber], 0);
  for (std::size_t i = kNumber + 1; i < (has_name ? kWords : kPlainWords); ++i) store(&to[i], words[i]);
  store(&to[kNumber], number);
  return number;
}

void EventLog::start(std::uint64_t number, std::int64_t at) {
  std::uint64_t* const words = place(number);
  if (std::atomic_ref(words[kNumber]).load(std::memory_order_relaxed) != number) return;
  store(&words[kStarted], static_cast<std::uint64_t>(at));
}

void EventLog::end(std::uint64_t number, std::int64_t at, ddl_status status, std::uint8_t algorithm) {
  std::uint64_t* const words = place(number);
  if (std::atomic_ref(words[kNumber]).load(std::memory_order_relaxed) != number) return;
  if (status != DDL_OK || algorithm != 0) {
    std::uint64_t last = std::atomic_ref(words[kLast]).load(std::memory_order_relaxed);
    std::array<std::byte, sizeof last> bytes;
    std::memcpy(bytes.data(), &last, sizeof last);
    bytes[offsetof(Event, algorithm) - kLast * 8] = static_cast<std::byte>(algorithm);
    const auto value = static_cast<std::int16_t>(status);
    std::memcpy(bytes.data() + offsetof(Event, status) - kLast * 8, &value, sizeof value);
    std::memcpy(&last, bytes.data(), sizeof last);
    store(&words[kLast], last);
  }
  // A tick may be earlier than an exact time.
  const auto began =
      static_cast<std::int64_t>(std::atomic_ref(words[kBegin]).load(std::memory_order_relaxed));
  store(&words[kEnd], static_cast<std::uint64_t>(std::max(at, began)));
}

void EventLog::moment(Event event, std::string_view name) {
  event.begin = event.end = now();
  (void)begin(event, name);
}

void EventLog::end_step(std::uint32_t generation) {
  ring_.steps.fetch_add(1, std::memory_order_relaxed);
  Event event;
  event.kind = Event::Kind::kStep;
  event.generation = generation;
  moment(event);
}

}  // namespace ddl::runtime
