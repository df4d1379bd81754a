// The optimizer Adam, and how fast it learns, epoch by epoch.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include <Eigen/Core>

namespace fit {

// The optimizer: Adam (Kingma and Ba, 2015, algorithm 1).

/// Everything in here belongs to a checkpoint and to the state that rank 0 broadcasts.
struct Adam {
  explicit Adam(Eigen::Index parameter_count);

  /// Moves parameters against gradient. Every parameter moves by at most about learning_rate.
  void step(Eigen::VectorXd& parameters, const Eigen::VectorXd& gradient, double learning_rate);

  std::int64_t steps = 0;        ///< how often step() has run
  Eigen::VectorXd mean;          ///< decaying mean of the gradient
  Eigen::VectorXd mean_squares;  ///< decaying mean of its squares
};

// How fast to learn, epoch by epoch.

/// The linear scaling rule with gradual warm-up (Goyal et al., 2017): a batch that is scale times as large is learnt
/// with scale times the rate, reached in equal steps from the unscaled one. Then half a cosine down to zero
/// (Loshchilov and Hutter, 2017), so that the last steps converge instead of oscillating.
struct LearningRate {
  double base = 0.01;
  double scale = 1.0;  ///< how many times larger the global batch is than the one that base is meant for
  std::int64_t warmup_epochs = 100;
  std::int64_t epochs = 2000;  ///< the rate reaches zero here

  /// The rate of an epoch, counted from 0.
  double at(std::int64_t epoch) const {
    constexpr double kPi = 3.14159265358979323846;
    const double warm = warmup_epochs > 0
                            ? std::min(1.0, static_cast<double>(epoch) / static_cast<double>(warmup_epochs))
                            : 1.0;
    const double done = static_cast<double>(epoch) / static_cast<double>(epochs);
    return base * (1.0 + (scale - 1.0) * warm) * 0.5 * (1.0 + std::cos(kPi * done));
  }
};

}  // namespace fit
