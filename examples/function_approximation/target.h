// What is learnt: y = sin(2 pi x) + sin(4 pi x) on [-1, 1], and which part of it each rank sees.
#pragma once

#include <Eigen/Core>

namespace fit {

inline constexpr double kLeft = -1.0;
inline constexpr double kRight = 1.0;

/// y = sin(2 pi x) + sin(4 pi x), element by element.
Eigen::RowVectorXd target(const Eigen::RowVectorXd& x);

/// count evenly spaced values from kLeft to kRight, both included. count >= 2.
Eigen::RowVectorXd even_grid(Eigen::Index count);

/// One rank's training points and the piece of the interval that they stand for.
struct Part {
  Eigen::RowVectorXd x;
  Eigen::RowVectorXd y;
  double begin =
      kLeft;  ///< the piece reaches half-way to the neighbours' points; all pieces cover the interval
  double end = kRight;
};

/// Rank's neighbouring points out of even_grid(points). Every point belongs to exactly one rank; where the count
/// does not divide, the lower ranks hold one more. The grid, and so every x, is the same for any number of ranks.
/// Throws std::invalid_argument if a rank would be left without a point.
Part part_of_rank(Eigen::Index points, int rank, int size);

}  // namespace fit
