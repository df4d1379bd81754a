#include "target.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

namespace fit {
namespace {

constexpr double kPi = 3.14159265358979323846;

/// The i-th of points grid values: one expression for every caller, so that the bits never differ, and written so
/// that the grid is exactly symmetric.
double grid_value(Eigen::Index i, Eigen::Index points) {
  const auto from_left = static_cast<double>(i), from_right = static_cast<double>(points - 1 - i);
  return (kRight * from_left + kLeft * from_right) / static_cast<double>(points - 1);
}

}  // namespace

Eigen::RowVectorXd target(const Eigen::RowVectorXd& x) {
  return x.unaryExpr([](double v) { return std::sin(2 * kPi * v) + std::sin(4 * kPi * v); });
}

Eigen::RowVectorXd even_grid(Eigen::Index count) {
  return Eigen::RowVectorXd::NullaryExpr(count, [count](Eigen::Index i) { return grid_value(i, count); });
}

Part part_of_rank(Eigen::Index points, int rank, int size) {
  if (points < 2 || points < size) {
    throw std::invalid_argument(std::to_string(points) + " training points are too few for " +
                                std::to_string(size) + " ranks: each rank needs one, and the interval two");
  }
  const Eigen::Index share = points / size;
  const Eigen::Index extra = points % size;  // the first extra ranks hold one point more
  const Eigen::Index first = rank * share + std::min<Eigen::Index>(rank, extra);
  const Eigen::Index count = share + (rank < extra ? 1 : 0);

  Part part;
  part.x =
      Eigen::RowVectorXd::NullaryExpr(count, [=](Eigen::Index i) { return grid_value(first + i, points); });
  part.y = target(part.x);
  const auto border = [points](Eigen::Index i) {
    return (grid_value(i - 1, points) + grid_value(i, points)) / 2;
  };
  part.begin = first == 0 ? kLeft : border(first);
  part.end = first + count == points ? kRight : border(first + count);
  return part;
}

}  // namespace fit
