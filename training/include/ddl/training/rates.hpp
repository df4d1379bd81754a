// Learning rates that change during the training: functions of the time, which can be put one behind the other.
#ifndef DDL_TRAINING_RATES_HPP
#define DDL_TRAINING_RATES_HPP

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "ddl/error.hpp"

namespace ddl::training {

namespace detail {
using ddl::detail::require;
}

/// The learning rate at a time, which is counted in epochs or in steps, whichever the numbers given to the schedule are
/// in. 2.5 is the middle of the third epoch. Times below 0 count as 0. It has no state, so a program that goes on from a
/// checkpoint only needs the time.
using Schedule = std::function<double(double time)>;

/// The time of a step in epochs, as Horovod and ddl.keras count it: step 0, the first one, is at 1 / steps_per_epoch. So
/// the last step of the warm-up has the full rate.
inline double time_of_step(std::uint64_t step, std::uint64_t steps_per_epoch) {
  detail::require(steps_per_epoch > 0, "an epoch has at least one step");
  // Whole epochs apart, so that they are exact.
  const std::uint64_t epochs = step / steps_per_epoch;
  const std::uint64_t begun = step % steps_per_epoch + 1;
  return static_cast<double>(epochs) + static_cast<double>(begun) / static_cast<double>(steps_per_epoch);
}

/// size times the batch, size times the rate (Goyal et al. 2017, https://arxiv.org/abs/1706.02677). With warmup(): large
/// batches need it in the first epochs.
inline double scaled_rate(double rate_of_one_rank, int size) { return rate_of_one_rank * size; }

inline Schedule constant(double rate) {
  return [rate](double) { return rate; };
}

/// rate, times factor from each of these times on. They rise. Goyal et al.: a tenth at epochs 30, 60 and 80.
inline Schedule steps(double rate, std::vector<double> times = {30, 60, 80}, double factor = 0.1) {
  detail::require(std::is_sorted(times.begin(), times.end()), "the times of the steps of a rate must rise");
  return [rate, times = std::move(times), factor](double time) {
    const auto passed = std::upper_bound(times.begin(), times.end(), time) - times.begin();
    return rate * std::pow(factor, static_cast<double>(passed));
  };
}

namespace detail {

/// 0 at the beginning, 1 at the end and behind it.
inline double part_of(double time, double total) { return std::clamp(time / total, 0.0, 1.0); }

}  // namespace detail

/// Half a cosine from rate to last, which is kept behind total (Loshchilov, Hutter 2017, without restarts).
inline Schedule cosine(double rate, double total, double last = 0.0) {
  detail::require(total > 0, "the time in which a rate falls must be above 0");
  return [rate, total, last](double time) {
    constexpr double kPi = 3.14159265358979323846;
    return last + (rate - last) / 2 * (1 + std::cos(kPi * detail::part_of(time, total)));
  };
}

/// last + (rate - last) * (1 - time / total)^power. Behind total it is last. Power 1 is a straight line.
inline Schedule polynomial(double rate, double total, double power = 1.0, double last = 0.0) {
  detail::require(total > 0, "the time in which a rate falls must be above 0");
  detail::require(power > 0, "the power of a polynomial rate must be above 0");
  return [rate, total, power, last](double time) {
    return last + (rate - last) * std::pow(1 - detail::part_of(time, total), power);
  };
}

/// Rises in a straight line to peak at the time warmup, and falls with the inverse square root of the time. The schedule
/// of Vaswani et al. 2017 for a model of width d is inverse_sqrt(1 / sqrt(d * warmup), warmup), with times in steps, the
/// first of which is 1.
inline Schedule inverse_sqrt(double peak, double warmup) {
  detail::require(warmup > 0, "the warm-up of a rate must be longer than 0");
  return [peak, warmup](double time) {
    if (time <= 0) return 0.0;
    return peak * std::min(std::sqrt(warmup / time), time / warmup);
  };
}

/// schedule, in the first epochs times a factor that grows in a straight line from 1 / size to 1 (Goyal et al. 2017). So
/// the first rate is that of one rank, if schedule has scaled_rate().
inline Schedule warmup(Schedule schedule, int size, double epochs = 5.0) {
  detail::require(size > 0, "a job has at least one rank");
  return [schedule = std::move(schedule), size, epochs](double time) {
    const double rate = schedule(time);
    return time >= epochs || epochs <= 0 ? rate
                                         : rate * (1 + std::max(time, 0.0) / epochs * (size - 1)) / size;
  };
}

/// first up to a time, then next, for which the time begins there at 0.
inline Schedule followed_by(Schedule first, double until, Schedule next) {
  return [first = std::move(first), until, next = std::move(next)](double time) {
    return time < until ? first(time) : next(time - until);
  };
}

/// How an optimizer with momentum m uses the rate lr.
enum class Velocity : std::uint8_t {
  kHasRate,    ///< v = m v + lr g, w -= v: Keras, Caffe
  kHasNoRate,  ///< u = m u + g, w -= lr u: PyTorch, and the optimizers of this folder
};

/// What velocities are multiplied with when the rate changes, before the first step with the new one: new / old where
/// they have the old rate in them, else 1. Multiplying u with it would be an error, not a correction (Goyal et al. 2017,
/// remark 2). From rate 0, 1: such velocities have no rate in them.
inline double momentum_correction(Velocity form, double old_rate, double new_rate) {
  return form == Velocity::kHasNoRate || old_rate == 0 ? 1.0 : new_rate / old_rate;
}

}  // namespace ddl::training

#endif  // DDL_TRAINING_RATES_HPP
