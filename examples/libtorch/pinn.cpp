// Solves -u'' = f on [-1, 1] with u(-1) = u(1) = 0 by a physics-informed network with libtorch, on one rank or many:
//
//   ddlrun -np 2 torch_pinn                   one network, each rank has its part of the interval
//   ddlrun -np 2 torch_pinn --form ensemble   a network on each rank; their mean, and their spread
//   ddlrun -np 2 torch_pinn --form problems   a network on each rank, which solves a problem of its own
//
// f is (k pi)^2 sin(k pi x), so u is sin(k pi x), and the error can be told. k is --waves, or the rank + 1 in the last form.
// The network never sees u: it learns from the residual -u'' - f at points of the interval (Raissi et al. 2019,
// https://doi.org/10.1016/j.jcp.2018.10.045). examples/python/pinn.py is the same in Python.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include <ddl/training/agreement.hpp>
#include <ddl/training/torch/module.hpp>

#include "network.h"

namespace {

namespace training = ddl::training;
using torch::Tensor;

struct Options {
  std::string form = "data-parallel";
  int epochs = 1500;
  int points = 120;
  int waves = 2;
};

Tensor exact(const Tensor& x, int waves) { return torch::sin(waves * M_PI * x); }

/// u(x) = (1 - x^2) N(x): the factor makes the boundary values zero, whatever the network N is.
Tensor solution(torch::nn::Sequential& network, const Tensor& x) {
  // A network with first weights of this size finds waves on the interval sooner.
  return (1 - x.square()) * network->forward(M_PI * x);
}

/// -u'' - f at the points x, over the size of f.
Tensor residual(torch::nn::Sequential& network, const Tensor& x, int waves) {
  // A point's u depends on this point alone, so the gradient of the sum has the derivative at each point.
  const auto derivative = [&](const Tensor& u) {
    return torch::autograd::grad({u.sum()}, {x}, /*grad_outputs=*/{}, /*retain_graph=*/true,
                                 /*create_graph=*/true)[0];
  };
  const Tensor curvature = derivative(derivative(solution(network, x)));
  return -curvature / std::pow(waves * M_PI, 2) - exact(x, waves);
}

void train(ddl::Context& context, const Options& options) {
  const int rank = context.rank(), size = context.size();
  const bool is_shared = options.form == "data-parallel";
  const int waves = options.form == "problems" ? rank + 1 : options.waves;
  if (is_shared && options.points < size)
    throw std::invalid_argument("--points has to be one for each rank at least");
  Tensor x = torch::linspace(-1, 1, options.points).unsqueeze(1);
  if (is_shared) x = x.tensor_split(size)[rank];
  x = x.clone().set_requires_grad(true);

  // Networks of an ensemble begin with different weights.
  const auto seed = static_cast<std::uint64_t>(options.form == "ensemble" ? rank : 0);
  auto network = tanh_network({1, 24, 24, 1}, seed);
  torch::optim::Adam adam(network->parameters(), 0.02);
  std::optional<training::DistributedOptimizer> together;
  double weight = 1.0;
  if (is_shared) {
    together.emplace(context, *network, adam);
    weight = training::batch_weight(context, static_cast<std::uint64_t>(x.size(0)));
    training::broadcast_module(context, *network);
  }
  for (int epoch = 0; epoch < options.epochs; ++epoch) {
    adam.param_groups()[0].options().set_lr(0.02 *
                                            std::pow(0.01, static_cast<double>(epoch) / options.epochs));
    together ? together->zero_grad() : adam.zero_grad();
    const Tensor loss = residual(network, x, waves).square().mean();
    (loss * weight).backward();
    together ? together->step() : static_cast<void>(adam.step());
    if ((epoch + 1) % std::max(options.epochs / 4, 1) != 0) continue;
    const double mean = training::average_metrics(context, {{"loss", weight * loss.item<double>()}})["loss"];
    if (rank == 0) std::printf("epoch %5d  loss %.3e\n", epoch + 1, mean);
  }

  const torch::NoGradGuard no_gradients;
  const Tensor grid = torch::linspace(-1, 1, 201).unsqueeze(1);
  const Tensor own = solution(network, grid).reshape({-1}).contiguous();
  std::vector<double> outputs =
      context.allgather(std::vector<double>(own.data_ptr<double>(), own.data_ptr<double>() + own.numel()));
  if (rank != 0) return;
  const Tensor all = torch::from_blob(outputs.data(), {size, grid.size(0)});
  const Tensor line = grid.reshape({-1});
  if (options.form == "problems") {
    double worst = 0.0;
    for (int i = 0; i < size; ++i) {
      const Errors errors = errors_of(all[i] - exact(line, i + 1));
      worst = std::max(worst, errors.largest);
      std::printf("rank %d: u = sin(%d pi x): largest error %.6f\n", i, i + 1, errors.largest);
    }
    std::printf("%d ranks, problems: largest error %.6f\n", size, worst);
    return;
  }
  const Errors errors = errors_of(all.mean(0) - exact(line, waves));
  std::printf("%d ranks, %s: largest error %.6f, rmse %.6f\n", size, options.form.c_str(), errors.largest,
              errors.rms);
  if (options.form == "ensemble")
    std::printf("mean spread %.6f\n", all.std(0, /*unbiased=*/false).mean().item<double>());
}

}  // namespace

int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  Options options;
  CLI::App app("Solves -u'' = f by a physics-informed network with libtorch.", "torch_pinn");
  app.add_option("--form", options.form, "data-parallel, ensemble or problems")
      ->check(CLI::IsMember({"data-parallel", "ensemble", "problems"}))
      ->capture_default_str();
  app.add_option("--epochs", options.epochs)->check(CLI::Range(1, 1000000))->capture_default_str();
  app.add_option("--points", options.points, "Of all ranks, or of each if they do not share them")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  app.add_option("--waves", options.waves, "k")->check(CLI::Range(1, 100))->capture_default_str();
  CLI11_PARSE(app, argc, argv);

  std::optional<ddl::Context> context;
  try {
    context.emplace();
    torch::set_num_threads(1);                                   // the network is too small for more
    torch::set_default_dtype(caffe2::TypeMeta::Make<double>());  // second derivatives lose half of the digits
    train(*context, options);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "torch_pinn: %s\n", error.what());
    std::exit(1);
  }
}
