#include "optimizer.h"

#include <cmath>

namespace fit {
namespace {

constexpr double kMeanDecay = 0.9;
constexpr double kSquaresDecay = 0.999;
constexpr double kEpsilon = 1e-8;

}  // namespace

Adam::Adam(Eigen::Index parameter_count)
    : mean(Eigen::VectorXd::Zero(parameter_count)), mean_squares(Eigen::VectorXd::Zero(parameter_count)) {}

void Adam::step(Eigen::VectorXd& parameters, const Eigen::VectorXd& gradient, double learning_rate) {
  ++steps;
  mean = kMeanDecay * mean + (1 - kMeanDecay) * gradient;
  mean_squares = kSquaresDecay * mean_squares + (1 - kSquaresDecay) * gradient.cwiseAbs2();
  // Both means start at zero, which pulls the first ones down; these factors undo it.
  const double mean_scale = 1 / (1 - std::pow(kMeanDecay, static_cast<double>(steps)));
  const double squares_scale = 1 / (1 - std::pow(kSquaresDecay, static_cast<double>(steps)));
  parameters.array() -=
      learning_rate * mean_scale * mean.array() / ((squares_scale * mean_squares.array()).sqrt() + kEpsilon);
}

}  // namespace fit
