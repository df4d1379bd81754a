// For how long what has failed is not used again: a host, or a slot of one.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <functional>

#include "base/deadline.h"

namespace ddl::launcher {

/// min_seconds after a failure, twice as long after the next one and so on, up to max_seconds. An hour without a failure
/// makes up for one. random: from 0 to 1; each time is up to a half longer by it, so that jobs that share a host do not
/// all return to it at once.
struct Cooldown {
  double min_seconds = 0;
  double max_seconds = 0;
  std::function<double()> random;
};

/// The failures of one thing. Has no clock: the caller says what time it is.
class Rest {
 public:
  using Time = std::chrono::steady_clock::time_point;

  void on_failed(const Cooldown& cooldown, Time now) {
    constexpr auto kForgiveness = std::chrono::hours(1);
    constexpr int kMaxDoublings = 30;  // two to this power is more than any limit
    constexpr double kJitter = 0.5;
    if (failures_ > 0)
      failures_ -= static_cast<int>(std::min<std::int64_t>((now - failed_at_) / kForgiveness, failures_));
    const double seconds = std::ldexp(cooldown.min_seconds, std::min(failures_, kMaxDoublings)) *
                           (1 + kJitter * (cooldown.random ? cooldown.random() : 0));
    ++failures_;
    failed_at_ = now;
    until_ = now + clock_duration(std::min(seconds, cooldown.max_seconds));
  }

  /// Without a failure: for the longest time.
  void begin(const Cooldown& cooldown, Time now) { until_ = now + clock_duration(cooldown.max_seconds); }

  /// The epoch: it has not failed.
  Time until() const { return until_; }

 private:
  int failures_ = 0;
  Time failed_at_;
  Time until_;
};

}  // namespace ddl::launcher
