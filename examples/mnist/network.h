// A multilayer perceptron that tells digits apart: relu in the hidden layers, softmax at the end.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include <Eigen/Core>

#include <ddl/training/parameters.hpp>

namespace mnist {

/// Samples are columns.
class Network {
 public:
  /// widths: units of each layer, the input first; at least two. The same seed draws the same weights.
  Network(std::vector<Eigen::Index> widths, std::uint64_t seed);

  /// Of layer l, number 2 l are the weights, by columns, and number 2 l + 1 the biases.
  const std::vector<ddl::training::Parameter>& parameters() const { return parameters_; }
  /// The same parameters, whose elements and gradients lie where an optimizer of ddl has put them.
  void use(const std::vector<ddl::training::Parameter>& parameters) { parameters_ = parameters; }

  /// How much speaks for each class (classes by samples), before softmax.
  Eigen::MatrixXf predict(const Eigen::MatrixXf& images) const;

  /// Called with the number of a parameter whose gradient is complete.
  using Ready = std::function<void(std::size_t)>;

  /// Returns the mean cross-entropy of the samples, and stores its derivatives in the gradients of the parameters, those
  /// of the last layer first.
  double backward(const Eigen::MatrixXf& images, const std::vector<std::uint8_t>& labels, const Ready& ready);

 private:
  std::vector<Eigen::MatrixXf> forward(const Eigen::MatrixXf& images) const;

  std::vector<Eigen::Index> widths_;
  std::vector<std::vector<float>> drawn_;
  std::vector<ddl::training::Parameter> parameters_;
};

}  // namespace mnist
