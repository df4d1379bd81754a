#include "mlp.h"

#include <cmath>
#include <random>
#include <stdexcept>
#include <utility>

namespace fit {
namespace {

/// Where one layer's numbers lie in a flat vector: a matrix of outputs x inputs, then the biases.
template <class Flat>
struct LayerView {
  LayerView(Flat& flat, Eigen::Index offset, Eigen::Index inputs, Eigen::Index outputs)
      : weights(flat.data() + offset, outputs, inputs),
        biases(flat.data() + offset + outputs * inputs, outputs) {}
  static constexpr bool kConst = std::is_const_v<Flat>;
  Eigen::Map<std::conditional_t<kConst, const Eigen::MatrixXd, Eigen::MatrixXd>> weights;
  Eigen::Map<std::conditional_t<kConst, const Eigen::VectorXd, Eigen::VectorXd>> biases;
};

std::size_t layer_count(const std::vector<Eigen::Index>& widths) { return widths.size() - 1; }

/// Offset of a layer's first number, or of the end for layer == layer_count().
Eigen::Index layer_offset(const std::vector<Eigen::Index>& widths, std::size_t layer) {
  Eigen::Index offset = 0;
  for (std::size_t l = 0; l < layer; ++l) offset += (widths[l] + 1) * widths[l + 1];
  return offset;
}

template <class Flat>
LayerView<Flat> layer_view(Flat& flat, const std::vector<Eigen::Index>& widths, std::size_t layer) {
  return {flat, layer_offset(widths, layer), widths[layer], widths[layer + 1]};
}

/// Uniform in [-1, 1). std::uniform_real_distribution may differ between standard libraries, the engine may not.
double symmetric_uniform(std::mt19937_64& engine) {
  return static_cast<double>(engine() >> 11) * 0x1.0p-52 - 1.0;
}

}  // namespace

Mlp::Mlp(std::vector<Eigen::Index> widths, std::uint64_t seed) : widths_(std::move(widths)) {
  if (widths_.size() < 2) throw std::invalid_argument("a network needs an input and an output layer");
  for (const Eigen::Index width : widths_) {
    if (width < 1) throw std::invalid_argument("every layer of a network needs a unit");
  }
  parameters_.resize(layer_offset(widths_, layer_count(widths_)));

  // Glorot's uniform range keeps activations and gradients of equal size through the layers. The first layer is
  // wider: with inputs in [-1, 1] its units must switch all over the interval and steeply enough to follow the
  // target's four periods, which small weights learn only slowly.
  constexpr double kFirstLayerRange = 6.0;
  std::mt19937_64 engine(seed);
  for (std::size_t l = 0; l < layer_count(widths_); ++l) {
    auto layer = layer_view(parameters_, widths_, l);
    const double glorot = std::sqrt(6.0 / static_cast<double>(widths_[l] + widths_[l + 1]));
    const double range = l == 0 ? kFirstLayerRange : glorot;
    for (double& weight : layer.weights.reshaped()) weight = range * symmetric_uniform(engine);
    for (double& bias : layer.biases) bias = l == 0 ? range * symmetric_uniform(engine) : 0.0;
  }
}

Eigen::MatrixXd Mlp::predict(const Eigen::MatrixXd& x) const {
  Eigen::MatrixXd activation = x;
  for (std::size_t l = 0; l < layer_count(widths_); ++l) {
    const auto layer = layer_view(parameters_, widths_, l);
    activation = ((layer.weights * activation).colwise() + layer.biases).eval();
    if (l + 1 < layer_count(widths_)) activation = activation.array().tanh();
  }
  return activation;
}

double Mlp::squared_error(const Eigen::MatrixXd& x, const Eigen::MatrixXd& y,
                          Eigen::Ref<Eigen::VectorXd> gradient, const LayerDone& layer_done) const {
  // Forward, keeping what every layer put out: a[0] = x, a[l+1] = tanh(W a[l] + b), the last one without tanh.
  const std::size_t layers = layer_count(widths_);
  std::vector<Eigen::MatrixXd> a(layers + 1);
  a[0] = x;
  for (std::size_t l = 0; l < layers; ++l) {
    const auto layer = layer_view(parameters_, widths_, l);
    a[l + 1] = (layer.weights * a[l]).colwise() + layer.biases;
    if (l + 1 < layers) a[l + 1] = a[l + 1].array().tanh();
  }

  // Backward: delta is the derivative of the error with respect to a layer's sums W a + b. From it follow the
  // layer's own gradient and, through W and tanh' = 1 - tanh^2, the delta of the layer below.
  Eigen::MatrixXd delta = 2.0 * (a[layers] - y);
  const double error = (a[layers] - y).squaredNorm();
  for (std::size_t l = layers; l-- > 0;) {
    auto slope = layer_view(gradient, widths_, l);
    slope.weights.noalias() = delta * a[l].transpose();
    slope.biases = delta.rowwise().sum();
    if (layer_done) {
      const Eigen::Index first = layer_offset(widths_, l);
      layer_done(l, first, layer_offset(widths_, l + 1) - first);
    }
    if (l > 0) {
      const auto layer = layer_view(parameters_, widths_, l);
      delta = ((layer.weights.transpose() * delta).array() * (1.0 - a[l].array().square())).matrix().eval();
    }
  }
  return error;
}

}  // namespace fit
