// Time: a point after which waiting is over, a length of time as messages carry it, and the clock of the kernel.
#pragma once

#include <time.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <limits>

namespace ddl {

/// A number of seconds, below 300 years, as the steady clock counts it.
inline std::chrono::steady_clock::duration clock_duration(double seconds) {
  return std::chrono::duration_cast<std::chrono::steady_clock::duration>(
      std::chrono::duration<double>(seconds));
}

/// A moment of the steady clock, or never.
class Deadline {
 public:
  using Clock = std::chrono::steady_clock;

  static Deadline never() { return Deadline(Clock::time_point::max()); }
  static Deadline after(Clock::duration duration) { return Deadline(Clock::now() + duration); }
  /// seconds <= 0 or absurdly large: never.
  static Deadline after_seconds(double seconds) {
    if (seconds <= 0 || seconds > 1e9) return never();
    return after(clock_duration(seconds));
  }

  bool is_never() const { return when_ == Clock::time_point::max(); }
  bool has_passed() const { return !is_never() && Clock::now() >= when_; }
  Clock::time_point when() const { return when_; }
  /// What is left, never negative; Clock::duration::max() if it never passes.
  Clock::duration remaining() const {
    if (is_never()) return Clock::duration::max();
    return std::max(Clock::duration::zero(), when_ - Clock::now());
  }
  /// For poll(2): milliseconds rounded up, -1 if it never passes.
  int poll_milliseconds() const {
    if (is_never()) return -1;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(remaining()).count();
    return static_cast<int>(std::min<long long>(left, std::numeric_limits<int>::max()));
  }

 private:
  explicit Deadline(Clock::time_point when) : when_(when) {}
  Clock::time_point when_;
};

/// A length of time in seconds, as it travels in messages: a number to compute with, and a type of its own so that
/// its decoder can bound it (a length without bound overflows the clocks it is added to).
struct Seconds {
  double value = 0;

  constexpr Seconds() = default;
  constexpr Seconds(double seconds) : value(seconds) {}  // NOLINT(google-explicit-constructor): a number
  constexpr operator double() const { return value; }    // NOLINT(google-explicit-constructor): a number
};

/// The longest that is taken from a message, about 30 years.
inline constexpr double kMaxSeconds = 1e9;

// CLOCK_MONOTONIC, which the processes of a host share, in nanoseconds.

inline std::int64_t read_kernel_clock(clockid_t id) {
  timespec time{};
  ::clock_gettime(id, &time);
  return time.tv_sec * std::int64_t{1'000'000'000} + time.tv_nsec;
}

inline std::int64_t kernel_now() { return read_kernel_clock(CLOCK_MONOTONIC); }
/// That of the kernel's last tick, 1 to 10 ms ago: several times cheaper.
inline std::int64_t kernel_tick() { return read_kernel_clock(CLOCK_MONOTONIC_COARSE); }

}  // namespace ddl
