// The optimizer and the learning rate.
#include <cmath>

#include "examples/function_approximation/optimizer.h"
#include "support/catch.h"

using fit::Adam;
using fit::LearningRate;

TEST_CASE("Adam's first step is the learning rate, against the gradient's sign") {
  Adam adam(3);
  Eigen::VectorXd parameters = Eigen::VectorXd::Zero(3);
  adam.step(parameters, Eigen::Vector3d(2.0, -1e-3, 0.0), 0.1);
  CHECK(adam.steps == 1);
  CHECK(parameters[0] == Approx(-0.1).epsilon(1e-7));
  CHECK(parameters[1] == Approx(0.1).epsilon(1e-4));
  CHECK(parameters[2] == 0.0);
}

TEST_CASE("Adam's second step agrees with the paper") {
  Adam adam(1);
  Eigen::VectorXd parameter = Eigen::VectorXd::Zero(1);
  adam.step(parameter, Eigen::VectorXd::Constant(1, 1.0), 0.5);
  const double after_first = parameter[0];
  adam.step(parameter, Eigen::VectorXd::Constant(1, 3.0), 0.5);
  const double mean = (0.9 * 0.1 * 1.0 + 0.1 * 3.0) / (1 - 0.9 * 0.9);
  const double squares = (0.999 * 0.001 * 1.0 + 0.001 * 9.0) / (1 - 0.999 * 0.999);
  CHECK(parameter[0] - after_first == Approx(-0.5 * mean / (std::sqrt(squares) + 1e-8)).epsilon(1e-12));
}

TEST_CASE("Adam converges to the minimum of a quadratic function") {
  Adam adam(2);
  const Eigen::Vector2d bottom(1.5, -0.25), steepness(1.0, 100.0);
  Eigen::VectorXd at = Eigen::VectorXd::Zero(2);
  LearningRate rate;
  rate.base = 0.05;
  rate.epochs = 1000;
  for (int epoch = 0; epoch < 1000; ++epoch) {
    adam.step(at, (steepness.array() * (at - bottom).array()).matrix(), rate.at(epoch));
  }
  CHECK((at - bottom).norm() < 1e-4);
}

TEST_CASE("an unscaled learning rate has no warm-up and decreases to zero") {
  LearningRate rate;
  rate.base = 0.2;
  rate.epochs = 1000;
  CHECK(rate.at(0) == 0.2);
  CHECK(rate.at(500) == Approx(0.1));
  CHECK(rate.at(1000) == Approx(0.0).margin(1e-15));
  for (int epoch = 1; epoch <= 1000; ++epoch) CHECK(rate.at(epoch) < rate.at(epoch - 1));
}

TEST_CASE("a scaled learning rate starts unscaled and is reached after the warm-up") {
  LearningRate rate, unscaled;
  rate.scale = 8;
  for (const int epoch : {0, 25, 50, 100, 101, 1500}) {
    const double expected = epoch < 100 ? 1.0 + 7.0 * epoch / 100 : 8.0;
    CHECK(rate.at(epoch) / unscaled.at(epoch) == Approx(expected).epsilon(1e-12));
  }
  rate.warmup_epochs = 0;
  CHECK(rate.at(0) == 8 * unscaled.at(0));
}
