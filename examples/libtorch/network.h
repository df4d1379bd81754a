// What both examples have: a small network, and how large errors are.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <vector>

/// Layers of these widths with tanh between them. The same seed draws the same weights.
inline torch::nn::Sequential tanh_network(const std::vector<std::int64_t>& widths, std::uint64_t seed) {
  torch::manual_seed(seed);
  torch::nn::Sequential network;
  for (std::size_t i = 0; i + 1 < widths.size(); ++i) {
    if (i > 0) network->push_back(torch::nn::Tanh());
    network->push_back(torch::nn::Linear(widths[i], widths[i + 1]));
  }
  return network;
}

struct Errors {
  double largest = 0.0;
  double rms = 0.0;
};
inline Errors errors_of(const torch::Tensor& differences) {
  return {differences.abs().max().item<double>(), differences.square().mean().sqrt().item<double>()};
}
