// What this rank does, as events in a ring that outlives it (contract/event_ring.h).
//
// An event costs a few stores into memory that nobody else writes, and a look at a clock at its begin and at its end.
// While no timeline is recorded, that clock is the kernel's last tick, which is read in a few nanoseconds.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string_view>
#include <utility>

#include "base/deadline.h"
#include "base/fd.h"
#include "contract/event_ring.h"
#include "ddl/ddl.h"
#include "runtime/src/common/call.h"

namespace ddl::runtime {

/// For tests: a clock that differs from that of other hosts.
struct ClockSkew {
  double seconds = 0;
  double ppm = 0;  ///< since CLOCK_MONOTONIC's zero
};

/// All functions may be called from any thread. Not in a forked child, which shares the memory with its parent.
class EventLog {
 public:
  enum class Keeps {
    kAlways,         ///< the launcher reads the latest events at any time
    kWhileRecording  ///< nobody reads events of other times, so they are not written
  };
  /// Of the ring in this memory, which owner keeps. bytes: of the memory behind its head, for events.
  EventLog(contract::EventRing& ring, std::size_t bytes, std::shared_ptr<const void> owner,
           ClockSkew skew = {}, Keeps keeps = Keeps::kAlways);

  /// Whether events are kept now.
  bool is_on() const { return keeps_ == Keeps::kAlways || is_exact(); }
  const contract::EventRing& ring() const { return ring_; }
  /// The ring and its events.
  std::span<const std::byte> memory() const;

  /// In nanoseconds: exact while a timeline is recorded, otherwise that of the last tick.
  std::int64_t now() const { return clock(is_exact()); }
  std::int64_t exact_now() const { return clock(true); }
  bool is_exact() const {
    return ring_.is_exact.load(std::memory_order_relaxed) != 0 || records_.load(std::memory_order_relaxed);
  }
  /// Records a timeline from now on, of this number of latest events as far as there is room; or no longer, unless the
  /// launcher records one.
  void record(std::uint32_t events);
  void stop_recording() { records_ = false; }

  /// An event begins: what it is, as far as that is known, and its name if its kind has one. A begin of 0 stands for
  /// now. Returns its number; 0 if it is not kept, which the functions below accept.
  std::uint64_t begin(const contract::Event& event, std::string_view name = {}) {
    return begin(event, name, event.begin != 0 ? event.begin : now());
  }
  /// The same at this time. Not by event.begin: an event that has just been written in parts is slow to read as a whole.
  std::uint64_t begin(const contract::Event& event, std::string_view name, std::int64_t at);
  /// Of a tensor: the call that executes it begins.
  void start(std::uint64_t number, std::int64_t at);
  /// It ends, and this algorithm was used if it is a call. Nothing happens if so many events have begun since that this
  /// one is not kept.
  void end(std::uint64_t number, std::int64_t at, ddl_status status, std::uint8_t algorithm = 0);
  /// A moment: begins and ends now.
  void moment(contract::Event event, std::string_view name = {});
  /// A step of named tensors has ended.
  void end_step(std::uint32_t generation);

  /// A descriptor that becomes readable when the clock is to be compared with that of another host: while a timeline is
  /// recorded and events come, soon after the first one, then more and more rarely. Makes it at the first call; -1: it
  /// cannot be made. Not while other threads use this.
  int comparison_due();
  /// Takes back what makes it readable.
  void take_comparison_due();
  /// Ranks and hosts may be others from now on: forgets what was compared.
  void forget_clock_samples();
  /// The clock of this rank of the job was compared. One thread.
  void add_clock_sample(int peer, const contract::ClockSample& sample);
  /// Returns when the clock has been compared once more, if it is compared at all, or at the deadline. Not on that
  /// thread.
  void compare_clock_now(Deadline deadline);

 private:
  std::int64_t clock(bool is_exact) const;
  std::uint64_t* place(std::uint64_t number) const;
  void check_comparison(std::int64_t now);

  contract::EventRing& ring_;
  std::uint32_t capacity_;
  Keeps keeps_;
  std::atomic<bool> records_{false};
  std::shared_ptr<const void> owner_;
  ClockSkew skew_;
  UniqueFd due_;  ///< an eventfd
  std::mutex comparison_mutex_;
  std::condition_variable compared_;
  std::uint64_t comparisons_ = 0;  ///< guarded by comparison_mutex_
  std::atomic<std::int64_t> next_comparison_{0};
  std::int64_t pause_ =
      0;  ///< before the comparison after that; changed by the thread that sets next_comparison_
};

/// An event of a call, as far as the call says what it is.
inline contract::Event event_of(const Call& call, std::uint64_t bytes) {
  contract::Event event;
  event.bytes = bytes;
  event.call_kind = static_cast<std::uint8_t>(call.kind);
  event.op = static_cast<std::uint8_t>(call.op);
  event.dtype = static_cast<std::uint16_t>(call.dtype);
  return event;
}

/// An event that begins with this object and ends with it, or before, at end(). log: null if nothing is recorded.
class LoggedInterval {
 public:
  LoggedInterval(EventLog* log, const contract::Event& event, std::string_view name = {})
      : log_(log),
        began_(log == nullptr     ? 0
               : event.begin != 0 ? event.begin
                                  : log->now()),
        number_(log == nullptr ? 0 : log->begin(event, name, began_)) {}
  ~LoggedInterval() { (void)end(); }
  LoggedInterval(const LoggedInterval&) = delete;
  LoggedInterval& operator=(const LoggedInterval&) = delete;

  std::int64_t began() const { return began_; }
  /// Ends it. Returns when, by the log's clock; 0 if there is no log, or it has ended before.
  std::int64_t end() {
    if (log_ == nullptr) return 0;
    const std::int64_t now = log_->now();
    std::exchange(log_, nullptr)->end(number_, now, status_, algorithm_);
    return now;
  }
  /// What it ends with.
  void set(ddl_status status, std::uint8_t algorithm = 0) {
    status_ = status;
    algorithm_ = algorithm;
  }

 private:
  EventLog* log_;
  std::int64_t began_;
  std::uint64_t number_;
  ddl_status status_ = DDL_OK;
  std::uint8_t algorithm_ = 0;
};

}  // namespace ddl::runtime
