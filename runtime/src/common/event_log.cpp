#include "runtime/src/common/event_log.h"

#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/deadline.h"

namespace ddl::runtime {
namespace {

using contract::Event;
using contract::EventRing;

/// The words of one of the two lines, and those that change when an event goes on.
constexpr std::size_t kLineWords = offsetof(Event, name) / sizeof(std::uint64_t);
using Line = std::array<std::uint64_t, kLineWords>;
static_assert(2 * sizeof(Line) == sizeof(Event));
constexpr std::size_t kNumber = 0, kBegin = offsetof(Event, begin) / 8,
                      kStarted = offsetof(Event, started) / 8, kEnd = offsetof(Event, end) / 8,
                      kLast = offsetof(Event, kind) / 8;
static_assert(kLast == kLineWords - 1);

void store(std::uint64_t* word, std::uint64_t value) {
  std::atomic_ref(*word).store(value, std::memory_order_release);
}

constexpr std::int64_t kNanoseconds = 1'000'000'000;

std::uint32_t thread_number() {
  static thread_local std::uint32_t number = 0;
  if (number == 0) number = static_cast<std::uint32_t>(::syscall(SYS_gettid));
  return number;
}

}  // namespace

EventLog::EventLog(EventRing& ring, std::size_t bytes, std::shared_ptr<const void> owner, ClockSkew skew,
                   Keeps keeps)
    : ring_(ring),
      capacity_(static_cast<std::uint32_t>(std::bit_floor(std::min<std::size_t>(
          {bytes / sizeof(Event), std::max(ring.capacity, 1U), EventRing::kMaxCapacity})))),
      keeps_(keeps),
      owner_(std::move(owner)),
      skew_(skew) {}

std::span<const std::byte> EventLog::memory() const {
  return {reinterpret_cast<const std::byte*>(&ring_), EventRing::bytes_for(capacity_)};
}

std::int64_t EventLog::clock(bool is_exact) const {
  const std::int64_t now = is_exact ? kernel_now() : kernel_tick();
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
  records_ = true;
}

std::uint64_t EventLog::begin(const Event& event, std::string_view name, std::int64_t begin) {
  const bool exact = is_exact();
  if (!exact && keeps_ == Keeps::kWhileRecording) return 0;
  if (exact && due_ && begin >= next_comparison_.load(std::memory_order_relaxed)) check_comparison(begin);
  Line line;
  std::memcpy(line.data(), &event, sizeof line);
  line[kBegin] = static_cast<std::uint64_t>(begin);
  const std::uint32_t thread = thread_number();
  std::memcpy(reinterpret_cast<std::byte*>(line.data()) + offsetof(Event, thread), &thread, sizeof thread);
  const std::uint64_t number = ring_.count.fetch_add(1, std::memory_order_relaxed) + 1;
  std::uint64_t* const to = place(number);
  store(&to[kNumber], 0);
  for (std::size_t i = kNumber + 1; i < kLineWords; ++i) store(&to[i], line[i]);
  if (Event::has_name(event.kind)) {
    line = {};
    if (!name.empty()) std::memcpy(line.data(), name.data(), std::min(name.size(), Event::kNameBytes));
    std::memcpy(reinterpret_cast<std::byte*>(line.data()) + Event::kNameBytes, &event.tensors,
                sizeof event.tensors);
    for (std::size_t i = 0; i < kLineWords; ++i) store(&to[kLineWords + i], line[i]);
  }
  store(&to[kNumber], number);
  return number;
}

int EventLog::comparison_due() {
  if (!due_) due_.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  return due_ ? due_.get() : -1;
}

void EventLog::take_comparison_due() {
  eventfd_t count = 0;
  (void)::eventfd_read(due_.get(), &count);
}

void EventLog::check_comparison(std::int64_t now) {
  constexpr std::int64_t kFirstPause = 250'000'000, kLongestPause = 10'000'000'000;
  std::int64_t due = next_comparison_.load(std::memory_order_relaxed);
  const std::int64_t pause = pause_ == 0 ? kFirstPause : std::min(2 * pause_, kLongestPause);
  // The thread that moves the time is the one that signals.
  if (now < due || !next_comparison_.compare_exchange_strong(due, now + pause, std::memory_order_acq_rel))
    return;
  pause_ = pause;
  (void)::eventfd_write(due_.get(), 1);
}

void EventLog::forget_clock_samples() {
  contract::ClockRecord& record = ring_.clock;
  record.version.fetch_add(1, std::memory_order_release);
  record.peer.store(0, std::memory_order_release);
  record.count.store(0, std::memory_order_release);
  record.version.fetch_add(1, std::memory_order_release);
}

void EventLog::add_clock_sample(int peer, const contract::ClockSample& sample) {
  contract::ClockRecord& record = ring_.clock;
  const std::uint32_t version = record.version.load(std::memory_order_relaxed);
  record.version.store(version + 1, std::memory_order_relaxed);
  std::uint32_t count =
      std::min<std::uint32_t>(record.count.load(std::memory_order_relaxed), record.kSamples);
  if (count == record.kSamples) {
    for (std::uint32_t kept = 0; kept < count / 2; ++kept) {
      for (std::uint32_t word = 0; word < 3; ++word)
        record.samples[3 * kept + word].store(record.samples[6 * kept + word].load(std::memory_order_relaxed),
                                              std::memory_order_release);
    }
    count /= 2;
  }
  record.samples[3 * count].store(sample.at, std::memory_order_release);
  record.samples[3 * count + 1].store(sample.offset, std::memory_order_release);
  record.samples[3 * count + 2].store(sample.bound, std::memory_order_release);
  record.peer.store(peer + 1, std::memory_order_release);
  record.count.store(count + 1, std::memory_order_release);
  record.version.store(version + 2, std::memory_order_release);
  const std::lock_guard lock(comparison_mutex_);
  ++comparisons_;
  compared_.notify_all();
}

void EventLog::compare_clock_now(Deadline deadline) {
  if (!due_) return;
  std::unique_lock lock(comparison_mutex_);
  const std::uint64_t before = comparisons_;
  (void)::eventfd_write(due_.get(), 1);
  compared_.wait_until(lock, deadline.when(), [&] { return comparisons_ != before; });
}

void EventLog::start(std::uint64_t number, std::int64_t at) {
  if (number == 0) return;
  std::uint64_t* const words = place(number);
  if (std::atomic_ref(words[kNumber]).load(std::memory_order_relaxed) != number) return;
  store(&words[kStarted], static_cast<std::uint64_t>(at));
}

void EventLog::end(std::uint64_t number, std::int64_t at, ddl_status status, std::uint8_t algorithm) {
  if (number == 0) return;
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
  const std::int64_t ended = kernel_now();
  if (ring_.steps.fetch_add(1, std::memory_order_relaxed) == 0) ring_.first_step_end = ended;
  ring_.last_step_end = ended;
  Event event;
  event.kind = Event::Kind::kStep;
  event.generation = generation;
  moment(event);
}

}  // namespace ddl::runtime
