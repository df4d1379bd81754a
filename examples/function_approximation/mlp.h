// A multilayer perceptron: tanh in the hidden layers, a linear output.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include <Eigen/Core>

namespace fit {

/// All weights and biases lie in one flat vector, and so does the gradient: what a training step exchanges between
/// ranks is one buffer, whatever the number of layers. Samples are columns.
class Mlp {
 public:
  /// widths: units per layer, the input first, for example {1, 32, 32, 1}; at least two, each at least 1.
  /// Weights are drawn by seed: the same seed gives the same bits.
  Mlp(std::vector<Eigen::Index> widths, std::uint64_t seed);

  const std::vector<Eigen::Index>& widths() const { return widths_; }
  /// Layer after layer, each its weight matrix (by columns) and then its biases.
  Eigen::VectorXd& parameters() { return parameters_; }
  const Eigen::VectorXd& parameters() const { return parameters_; }

  /// Called as soon as the count entries of a gradient from first on, which are those of one layer, are complete.
  using LayerDone = std::function<void(std::size_t layer, Eigen::Index first, Eigen::Index count)>;

  /// The outputs for inputs x (input width by samples).
  Eigen::MatrixXd predict(const Eigen::MatrixXd& x) const;

  /// Returns the sum over all samples of |predict(x) - y|^2 and stores its derivative with respect to every
  /// parameter in gradient, which has the size of parameters(). It is a sum and not a mean, so that the results of
  /// several ranks can be added however many samples each of them holds.
  double squared_error(const Eigen::MatrixXd& x, const Eigen::MatrixXd& y,
                       Eigen::Ref<Eigen::VectorXd> gradient, const LayerDone& layer_done = {}) const;

 private:
  std::vector<Eigen::Index> widths_;
  Eigen::VectorXd parameters_;
};

}  // namespace fit
