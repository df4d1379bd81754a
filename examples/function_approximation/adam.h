// The optimizer: Adam (Kingma and Ba, 2015, algorithm 1).
#pragma once

#include <cstdint>

#include <Eigen/Core>

namespace fit {

/// Everything in here belongs to a checkpoint and to the state that rank 0 broadcasts.
struct Adam {
  explicit Adam(Eigen::Index parameter_count);

  /// Moves parameters against gradient. Every parameter moves by at most about learning_rate.
  void step(Eigen::VectorXd& parameters, const Eigen::VectorXd& gradient, double learning_rate);

  std::int64_t steps = 0;        ///< how often step() has run
  Eigen::VectorXd mean;          ///< decaying mean of the gradient
  Eigen::VectorXd mean_squares;  ///< decaying mean of its squares
};

}  // namespace fit
