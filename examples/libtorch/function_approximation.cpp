// Teaches a small neural network the function y = sin(2 pi x) + sin(4 pi x) on [-1, 1] with libtorch, on one rank or many:
//
//   ddlrun -np 2 torch_function_approximation              one network; each rank has its part of the interval
//   ddlrun -np 2 torch_function_approximation --ensemble   a network on each rank, which fits this rank's part
//
// The steps from one process to several are marked, as in examples/mnist. Step 3, a rate for larger batches, is not needed:
// all ranks together have the points that one rank would have.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <optional>
#include <stdexcept>
#include <vector>

#include <CLI/CLI.hpp>

#include <ddl/training/agreement.hpp>
#include <ddl/training/rates.hpp>
#include <ddl/training/torch/module.hpp>

#include "network.h"

namespace {

namespace training = ddl::training;

struct Options {
  int epochs = 2000;
  int points = 64;
  bool ensemble = false;
};

torch::Tensor target(const torch::Tensor& x) { return torch::sin(2 * M_PI * x) + torch::sin(4 * M_PI * x); }

void train(ddl::Context& context, const Options& options) {
  const int rank = context.rank(), size = context.size();
  if (options.points < size) throw std::invalid_argument("--points has to be one for each rank at least");
  const torch::Tensor x = torch::linspace(-1, 1, options.points).unsqueeze(1).tensor_split(size)[rank];
  const torch::Tensor y = target(x);

  auto network = tanh_network({1, 48, 48, 1}, static_cast<std::uint64_t>(rank));
  {
    // The units of the first layer switch all over the interval, and steeply: so the waves of the target are found sooner.
    const torch::NoGradGuard no_gradients;
    for (torch::Tensor& parameter : network[0]->parameters()) parameter.uniform_(-6, 6);
  }
  torch::optim::Adam adam(network->parameters(), 0.01);
  std::optional<training::DistributedOptimizer> together;
  double weight = 1.0;
  if (!options.ensemble) {
    // Step 4: gradients are averaged while the backward pass computes others. Ranks may have one point more than others.
    together.emplace(context, *network, adam);
    weight = training::batch_weight(context, static_cast<std::uint64_t>(x.size(0)));
    // Step 5: all ranks start with the parameters of rank 0.
    training::broadcast_module(context, *network);
  }

  const training::Schedule rate = training::cosine(0.01, options.epochs, 1e-4);
  for (int epoch = 0; epoch < options.epochs; ++epoch) {
    adam.param_groups()[0].options().set_lr(rate(epoch));
    together ? together->zero_grad() : adam.zero_grad();
    const torch::Tensor loss = torch::mse_loss(network->forward(x), y);
    (loss * weight).backward();
    together ? together->step() : static_cast<void>(adam.step());
    if ((epoch + 1) % std::max(options.epochs / 4, 1) != 0) continue;
    const double mean = training::average_metrics(context, {{"loss", weight * loss.item<double>()}})["loss"];
    // Step 6: rank 0 alone prints.
    if (rank == 0) std::printf("epoch %5d  loss %.3e\n", epoch + 1, mean);
  }

  // The error of a rank's network: on the whole interval, or on the rank's part of it.
  const torch::Tensor grid = torch::linspace(-1, 1, 401 * size).unsqueeze(1);
  const torch::Tensor own = options.ensemble ? grid.tensor_split(size)[rank] : grid;
  const torch::NoGradGuard no_gradients;
  const Errors errors = errors_of(network->forward(own) - target(own));
  const std::vector<double> all = context.allgather(std::vector<double>{errors.largest, errors.rms});
  if (rank != 0) return;
  double worst = 0.0;
  for (std::size_t i = 0; i < all.size(); i += 2) {
    worst = std::max(worst, all[i]);
    if (options.ensemble)
      std::printf("rank %zu: on its part: largest error %.6f, rmse %.6f\n", i / 2, all[i], all[i + 1]);
  }
  std::printf("%d ranks, %s: largest error %.6f\n", size, options.ensemble ? "ensemble" : "data-parallel",
              worst);
}

}  // namespace

int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  Options options;
  CLI::App app("Fits y = sin(2 pi x) + sin(4 pi x) with libtorch.", "torch_function_approximation");
  app.add_option("--epochs", options.epochs, "Steps over all points")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  app.add_option("--points", options.points, "Of all ranks together")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  app.add_flag("--ensemble", options.ensemble, "A network on each rank, for its own part of the interval");
  CLI11_PARSE(app, argc, argv);

  std::optional<ddl::Context>
      context;  // outside of the block: it is still there when the process ends by an error
  try {
    context.emplace();  // Step 1: join the job.
    torch::set_num_threads(
        1);  // Step 2: each rank has cores of its own; this network is too small for more than one.
    torch::set_default_dtype(caffe2::TypeMeta::Make<double>());
    train(*context, options);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "torch_function_approximation: %s\n", error.what());
    std::exit(1);
  }
}
