#include "network.h"

#include <cmath>
#include <random>
#include <string>
#include <utility>

namespace mnist {
namespace {

using Matrix = Eigen::Map<Eigen::MatrixXf>;
using Vector = Eigen::Map<Eigen::VectorXf>;

Matrix matrix_at(void* data, Eigen::Index rows, Eigen::Index columns) {
  return {static_cast<float*>(data), rows, columns};
}
Vector vector_at(void* data, Eigen::Index rows) { return {static_cast<float*>(data), rows}; }

}  // namespace

Network::Network(std::vector<Eigen::Index> widths, std::uint64_t seed) : widths_(std::move(widths)) {
  std::mt19937_64 engine(seed);
  for (std::size_t l = 0; l + 1 < widths_.size(); ++l) {
    const Eigen::Index inputs = widths_[l], outputs = widths_[l + 1];
    // He's range keeps activations of equal size through layers with relu (He et al. 2015).
    const double range = std::sqrt(6.0 / static_cast<double>(inputs));
    std::vector<float> weights(static_cast<std::size_t>(inputs * outputs));
    for (float& weight : weights)
      weight = static_cast<float>(range * (static_cast<double>(engine() >> 11) * 0x1.0p-52 - 1.0));
    drawn_.push_back(std::move(weights));
    drawn_.emplace_back(static_cast<std::size_t>(outputs), 0.0f);
  }
  const char* const kinds[] = {".weights", ".biases"};
  for (std::size_t i = 0; i < drawn_.size(); ++i)
    parameters_.push_back(ddl::training::parameter("layer" + std::to_string(i / 2) + kinds[i % 2],
                                                   drawn_[i].data(), drawn_[i].size()));
}

std::vector<Eigen::MatrixXf> Network::forward(const Eigen::MatrixXf& images) const {
  std::vector<Eigen::MatrixXf> outputs = {images};
  for (std::size_t l = 0; l + 1 < widths_.size(); ++l) {
    const auto weights = matrix_at(parameters_[2 * l].data, widths_[l + 1], widths_[l]);
    const auto biases = vector_at(parameters_[2 * l + 1].data, widths_[l + 1]);
    Eigen::MatrixXf sums = (weights * outputs[l]).colwise() + biases;
    if (l + 2 < widths_.size()) sums = sums.cwiseMax(0.0f).eval();
    outputs.push_back(std::move(sums));
  }
  return outputs;
}

Eigen::MatrixXf Network::predict(const Eigen::MatrixXf& images) const { return forward(images).back(); }

double Network::backward(const Eigen::MatrixXf& images, const std::vector<std::uint8_t>& labels,
                         const Ready& ready) {
  const std::vector<Eigen::MatrixXf> outputs = forward(images);
  // delta is the derivative of the loss with respect to a layer's sums W x + b. Of the last layer, with softmax and
  // cross-entropy, it is the probabilities, less 1 at the right class.
  Eigen::MatrixXf delta = outputs.back();
  const auto samples = static_cast<float>(images.cols());
  double loss = 0.0;
  for (Eigen::Index i = 0; i < delta.cols(); ++i) {
    auto one = delta.col(i);
    const auto right = static_cast<Eigen::Index>(labels[static_cast<std::size_t>(i)]);
    one.array() -= one.maxCoeff();  // so that no power is infinite; the probabilities stay
    const float of_right = one[right];
    one = one.array().exp().eval();
    loss += std::log(static_cast<double>(one.sum())) - static_cast<double>(of_right);
    one /= one.sum();
    one[right] -= 1.0f;
  }
  delta /= samples;
  for (std::size_t l = widths_.size() - 1; l-- > 0;) {
    matrix_at(parameters_[2 * l].gradient, widths_[l + 1], widths_[l]).noalias() =
        delta * outputs[l].transpose();
    // In memory of its own first: Eigen adds up in another order where the memory of the result begins elsewhere.
    const Eigen::VectorXf sums = delta.rowwise().sum();
    vector_at(parameters_[2 * l + 1].gradient, widths_[l + 1]) = sums;
    if (ready) ready(2 * l + 1);
    if (ready) ready(2 * l);
    if (l == 0) break;
    const auto weights = matrix_at(parameters_[2 * l].data, widths_[l + 1], widths_[l]);
    const Eigen::MatrixXf below = weights.transpose() * delta;
    delta = (outputs[l].array() > 0.0f).select(below, 0.0f);
  }
  return loss / static_cast<double>(samples);
}

}  // namespace mnist
