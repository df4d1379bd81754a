// The network: its output against values computed by hand, its gradient against finite differences.
#include "examples/function_approximation/mlp.h"

#include <cmath>

#include "support/catch.h"

using fit::Mlp;

namespace {

/// Values that are neither round nor equal, in [-1, 1].
Eigen::MatrixXd some_matrix(Eigen::Index rows, Eigen::Index cols, double phase) {
  return Eigen::MatrixXd::NullaryExpr(rows, cols, [=](Eigen::Index row, Eigen::Index col) {
    return std::sin(phase + 1.7 * static_cast<double>(row) + 0.9 * static_cast<double>(col));
  });
}

double error_of(const Mlp& model, const Eigen::MatrixXd& x, const Eigen::MatrixXd& y) {
  return (model.predict(x) - y).squaredNorm();
}

}  // namespace

TEST_CASE("a network without hidden layers is a linear function") {
  Mlp line({1, 1}, 1);
  REQUIRE(line.parameters().size() == 2);
  line.parameters() << 3.0, -0.5;
  const Eigen::MatrixXd y = line.predict(Eigen::RowVector3d(-1.0, 0.0, 2.0));
  CHECK(y.isApprox(Eigen::RowVector3d(-3.5, -0.5, 5.5)));
}

TEST_CASE("hidden layers are tanh, the output is linear") {
  Mlp model({1, 2, 1}, 1);
  REQUIRE(model.parameters().size() == 7);
  model.parameters() << 0.5, -2.0, 0.1, 0.2, 3.0, 4.0, -1.0;  // W1 (2x1), b1, W2 (1x2), b2
  const double x = 0.3;
  const double expected = 3.0 * std::tanh(0.5 * x + 0.1) + 4.0 * std::tanh(-2.0 * x + 0.2) - 1.0;
  CHECK(model.predict(Eigen::MatrixXd::Constant(1, 1, x))(0, 0) == Approx(expected).epsilon(1e-14));
}

TEST_CASE("backpropagation agrees with finite differences") {
  const std::vector<std::vector<Eigen::Index>> networks = {
      {1, 1}, {1, 4, 1}, {1, 5, 3, 1}, {2, 3, 2}, {3, 1, 4, 2}, {1, 2, 2, 2, 1}, {1, 16, 16, 1}};
  for (const auto& widths : networks) {
    Mlp model(widths, 7);
    const Eigen::MatrixXd x = some_matrix(widths.front(), 6, 0.2);
    const Eigen::MatrixXd y = some_matrix(widths.back(), 6, 1.3);

    Eigen::VectorXd gradient = Eigen::VectorXd::Constant(model.parameters().size(), NAN);
    const double error = model.squared_error(x, y, gradient);
    CHECK(error == Approx(error_of(model, x, y)).epsilon(1e-13));

    // Central differences: the error is of the order of the step's square, and of rounding divided by the step.
    constexpr double kStep = 1e-5;
    for (Eigen::Index i = 0; i < gradient.size(); ++i) {
      const double original = model.parameters()[i];
      model.parameters()[i] = original + kStep;
      const double above = error_of(model, x, y);
      model.parameters()[i] = original - kStep;
      const double below = error_of(model, x, y);
      model.parameters()[i] = original;
      INFO("layers " << widths.size() << ", parameter " << i << " of " << gradient.size());
      CHECK(gradient[i] == Approx((above - below) / (2 * kStep)).epsilon(1e-6).margin(1e-7));
    }
  }
}

TEST_CASE("a layer is reported when its gradient is complete, the last one first") {
  const Mlp model({1, 4, 3, 1}, 2);
  const Eigen::MatrixXd x = some_matrix(1, 6, 0.2), y = some_matrix(1, 6, 1.3);
  Eigen::VectorXd expected(model.parameters().size());
  model.squared_error(x, y, expected);

  Eigen::VectorXd gradient = Eigen::VectorXd::Zero(expected.size());
  std::size_t layers = 3;
  Eigen::Index begin = expected.size();
  model.squared_error(x, y, gradient, [&](std::size_t layer, Eigen::Index first, Eigen::Index count) {
    CHECK(layer == --layers);
    CHECK(first + count == begin);
    begin = first;
    CHECK(gradient.tail(expected.size() - first) == expected.tail(expected.size() - first));
  });
  CHECK(layers == 0);
  CHECK(begin == 0);
}

TEST_CASE("the gradients of parts of a batch add up to the gradient of the batch") {
  const Mlp model({1, 8, 8, 1}, 3);
  const Eigen::MatrixXd x = some_matrix(1, 10, 0.4), y = some_matrix(1, 10, 2.2);
  Eigen::VectorXd whole(model.parameters().size()), left = whole, right = whole;
  const double error = model.squared_error(x, y, whole);
  const double sum = model.squared_error(x.leftCols(3), y.leftCols(3), left) +
                     model.squared_error(x.rightCols(7), y.rightCols(7), right);
  CHECK(sum == Approx(error).epsilon(1e-14));
  CHECK((left + right - whole).cwiseAbs().maxCoeff() < 1e-12 * whole.cwiseAbs().maxCoeff());
}

TEST_CASE("the gradient may be written to the start of a longer buffer") {
  const Mlp model({1, 4, 1}, 3);
  const Eigen::MatrixXd x = some_matrix(1, 5, 0.4), y = some_matrix(1, 5, 2.2);
  Eigen::VectorXd alone(model.parameters().size());
  Eigen::VectorXd buffer = Eigen::VectorXd::Constant(alone.size() + 1, 5.0);
  model.squared_error(x, y, alone);
  model.squared_error(x, y, buffer.head(alone.size()));
  CHECK(buffer.head(alone.size()) == alone);
  CHECK(buffer[alone.size()] == 5.0);
}

TEST_CASE("the seed determines the weights") {
  const Mlp first({1, 32, 32, 1}, 5), again({1, 32, 32, 1}, 5), other({1, 32, 32, 1}, 6);
  CHECK(first.parameters() == again.parameters());
  CHECK(first.parameters() != other.parameters());
  // Determined by the standard of the random engine and by arithmetic only, so equal on all machines.
  CHECK(first.parameters()[0] == Approx(2.0767788477).epsilon(1e-10));
}

TEST_CASE("a network with invalid sizes of layers is refused") {
  CHECK_THROWS_AS(Mlp({}, 1), std::invalid_argument);
  CHECK_THROWS_AS(Mlp({1}, 1), std::invalid_argument);
  CHECK_THROWS_AS(Mlp({1, 0, 1}, 1), std::invalid_argument);
}
