// Training with libtorch: this program runs as each rank, under ddlrun.
#include <cstdio>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "ddl/training/sharded_optimizer.hpp"
#include "ddl/training/torch/batch_norm.hpp"
#include "ddl/training/torch/module.hpp"
#include "runtime/support/expect.h"
#include "training/ranks.h"

namespace {

using namespace ddl::training;  // NOLINT(google-build-using-namespace): this test is about nothing else
using ddl::conformance::expect;
using ddl::conformance::expect_contains;
using torch::Tensor;

constexpr std::int64_t kBatch = 24;  // of all ranks; divisible by 1 to 4

torch::nn::Sequential network(std::uint64_t seed) {
  torch::manual_seed(seed);
  return torch::nn::Sequential(torch::nn::Linear(3, 17), torch::nn::Tanh(), torch::nn::Linear(17, 5),
                               torch::nn::Tanh(), torch::nn::Linear(5, 1));
}

std::pair<Tensor, Tensor> samples(std::int64_t step) {
  torch::manual_seed(1000 + static_cast<std::uint64_t>(step));
  const Tensor x = torch::randn({kBatch, 3});
  return {x, x.square().sum(1, true)};
}

Tensor part_of(const Tensor& whole, const ddl::Context& context) {
  const std::int64_t share = whole.size(0) / context.size();
  return whole.slice(0, context.rank() * share, (context.rank() + 1) * share);
}

Tensor flat(const torch::nn::Module& module) {
  std::vector<Tensor> all;
  for (const Tensor& one : module.parameters()) all.push_back(one.detach().reshape({-1}));
  return torch::cat(all);
}

bool is_same_on_all(ddl::Context& context, const Tensor& tensor) {
  const Tensor dense = tensor.contiguous();
  const std::string bytes(static_cast<const char*>(dense.data_ptr()), dense.nbytes());
  return !any_rank(context, broadcast_bytes(context, bytes) != bytes);
}

/// The job trains on parts of each batch, in some passes; one process on the whole batch comes to the same.
void test_ranks_train_as_one_process(ddl::Context& context) {
  for (const int passes : {1, 2}) {
    auto model = network(static_cast<std::uint64_t>(context.rank())), alone = network(0);
    torch::optim::SGD sgd(model->parameters(), torch::optim::SGDOptions(0.05).momentum(0.9));
    torch::optim::SGD sgd_alone(alone->parameters(), torch::optim::SGDOptions(0.05).momentum(0.9));
    broadcast_module(context, *model);
    GradientOptions options;
    options.passes = passes;
    DistributedOptimizer optimizer(context, *model, sgd, options);
    for (int step = 0; step < 5; ++step) {
      const auto [x, y] = samples(step);
      optimizer.zero_grad();
      const Tensor own_x = part_of(x, context), own_y = part_of(y, context);
      for (int pass = 0; pass < passes; ++pass) {
        const std::int64_t share = own_x.size(0) / passes;
        const auto of_pass = [&](const Tensor& all) {
          return all.slice(0, pass * share, (pass + 1) * share);
        };
        (torch::mse_loss(model->forward(of_pass(own_x)), of_pass(own_y)) / passes).backward();
      }
      optimizer.step();
      sgd_alone.zero_grad();
      torch::mse_loss(alone->forward(x), y).backward();
      sgd_alone.step();
    }
    expect(torch::allclose(flat(*model), flat(*alone), 1e-4, 1e-5), "the same as one process");
    expect(is_same_on_all(context, flat(*model)), "the same bits on all ranks");
  }
}

/// Sees what a hook sees.
struct Seen {
  explicit Seen(std::vector<Parameter> all) : parameters_(std::move(all)) {
    for (Parameter& one : parameters_) {
      memory.emplace_back(one.count, 0.0f);
      one.gradient = memory.back().data();
    }
  }
  const std::vector<Parameter>& parameters() const { return parameters_; }
  void ready(std::size_t number) { values[number].push_back(memory[number][0]); }

  std::vector<std::vector<float>> memory;
  std::map<std::size_t, std::vector<float>>
      values;  ///< the gradient's first element, by the parameter's number

 private:
  std::vector<Parameter> parameters_;
};

/// A weight that is used twice has one gradient in each pass, and the hook comes when it is in the sum of the passes.
void test_hooks_come_after_accumulation(ddl::Context&) {
  torch::nn::Linear model(torch::nn::LinearOptions(3, 1).bias(false));
  Seen seen(parameters_of(*model));
  const Tensor x = torch::full({1, 3}, 2.0f);
  const auto pass = [&] { (model->forward(x) + model->forward(x)).sum().backward(); };
  {
    const ModuleHooks<Seen> hooks(*model, seen);
    pass();
    pass();
    expect(seen.values[0] == std::vector<float>{4.0f, 8.0f}, "a hook before its gradient");
  }
  pass();
  expect(seen.values[0].size() == 2, "a hook after its object has gone");
  expect(model->weight.grad()[0][0].item<float>() == 12.0f, "the gradient without hooks");
}

void test_gradients_stay_views(ddl::Context& context) {
  auto model = network(0);
  torch::optim::SGD sgd(model->parameters(), 0.0);
  const auto gradients_at = [&] {
    std::vector<void*> all;
    for (const Tensor& one : model->parameters())
      all.push_back(one.grad().defined() ? one.grad().data_ptr() : nullptr);
    return all;
  };
  const auto pass = [&] {
    const auto [x, y] = samples(0);
    torch::mse_loss(model->forward(part_of(x, context)), part_of(y, context)).backward();
  };
  {
    DistributedOptimizer optimizer(context, *model, sgd);
    optimizer.zero_grad();
    const std::vector<void*> views = gradients_at();
    pass();
    optimizer.step();
    expect(gradients_at() == views, "gradients are accumulated in libddl's memory");
    const Tensor first = model->parameters()[0].grad().clone();
    // The program's own way: the gradients are not there, and the backward pass gives memory to them.
    for (Tensor& one : model->parameters()) one.mutable_grad().reset();
    pass();
    optimizer.step();
    expect(gradients_at() == views, "new gradients become views");
    expect(torch::equal(model->parameters()[0].grad(), first), "with the same values");
    optimizer.zero_grad();
    expect(model->parameters()[0].grad().abs().max().item<float>() == 0.0f, "zeros");
    pass();
    bool is_refused = false;
    try {
      pass();
    } catch (const std::exception& error) {
      is_refused = true;
      expect_contains(error.what(), "was computed more than 1 times before the step");
    }
    expect(is_refused, "a second pass without a step");
    optimizer.finish();
    for (Tensor& one : model->parameters()) one.mutable_grad().reset();
  }
  pass();  // the hooks have ended with the optimizer
}

void test_parameters_that_are_not_used(ddl::Context& context) {
  for (const Unused unused : {Unused::kZeros, Unused::kKeep}) {
    auto model = network(0);
    torch::nn::Linear other(3, 1), of_first(3, 1);
    model->push_back("other", other);
    model->push_back("of_first", of_first);
    torch::optim::SGD sgd(model->parameters(), torch::optim::SGDOptions(1.0).weight_decay(0.5));
    broadcast_module(context, *model);
    GradientOptions options;
    options.unused = unused;
    DistributedOptimizer optimizer(context, *model, sgd, options);
    const Tensor before = other->weight.detach().clone(), before_of_first = of_first->weight.detach().clone();
    optimizer.zero_grad();
    const Tensor x = torch::ones({2, 3});
    Tensor loss = torch::zeros({});
    if (context.rank() == 0) loss = loss + of_first->forward(x).sum();
    if (loss.requires_grad()) loss.backward();
    optimizer.step();
    // A gradient of zeros lets weights decay; without a gradient nothing is done.
    expect(torch::allclose(other->weight, unused == Unused::kKeep ? before : before * 0.5f),
           "decay of what nobody uses");
    expect(
        torch::allclose(of_first->weight, before_of_first * 0.5f - 2.0f / static_cast<float>(context.size())),
        "what one rank uses");
    expect(is_same_on_all(context, flat(*model)), "the same on all ranks");
  }
}

/// The same model by slices: the bits of the whole.
void test_slices(ddl::Context& context) {
  auto whole_model = network(0), sharded_model = network(0);
  broadcast_module(context, *whole_model);
  broadcast_module(context, *sharded_model);
  Optimizer<Adam> whole(context, parameters_of(*whole_model), Adam{0.01});
  ShardingOptions options;
  options.bucket_bytes = 200;
  ShardedOptimizer<Adam> sharded(context, parameters_of(*sharded_model), Adam{0.01}, options);
  ModuleHooks whole_hooks(*whole_model, whole);
  ModuleHooks sharded_hooks(*sharded_model, sharded);
  for (int step = 0; step < 5; ++step) {
    const auto [x, y] = samples(step);
    whole_hooks.zero_grad();
    sharded_hooks.zero_grad();
    torch::mse_loss(whole_model->forward(part_of(x, context)), part_of(y, context)).backward();
    whole.step();
    torch::mse_loss(sharded_model->forward(part_of(x, context)), part_of(y, context)).backward();
    sharded.step();
    sharded.use_all();
    expect(torch::equal(flat(*whole_model), flat(*sharded_model)), "the bits of slices");
  }
}

void test_batch_norm(ddl::Context& context) {
  const int rank = context.rank(), size = context.size();
  for (const bool is_half : {false, true}) {
    torch::manual_seed(7);
    // Rank r has r + 2 samples.
    const std::int64_t all = size * (size + 3) / 2, first = rank * (rank + 3) / 2;
    const Tensor whole_x = (torch::randn({all, 3, 4, 2}) * 2 + 100).set_requires_grad(true);
    const Tensor whole_g = torch::randn({all, 3, 4, 2});
    torch::nn::BatchNorm2d alone(3);
    SyncBatchNorm layer(context, "layer", 3);
    {
      const torch::NoGradGuard no_gradients;
      alone->weight.copy_(torch::tensor({1.0f, 2.0f, -0.5f}));
      layer->weight.copy_(alone->weight);
    }
    const Tensor alone_y = alone->forward(whole_x);
    alone_y.backward(whole_g);
    Tensor own = whole_x.detach().slice(0, first, first + rank + 2).clone();
    if (is_half) own = own.to(torch::kBFloat16);
    own.set_requires_grad(true);
    const Tensor y = layer->forward(own);
    expect(y.scalar_type() == own.scalar_type(), "the type of the input");
    y.backward(whole_g.slice(0, first, first + rank + 2).to(own.scalar_type()));
    if (is_half) {
      expect(!y.isnan().any().item<bool>(), "sums that 16 bits do not hold");
      continue;
    }
    expect(torch::allclose(y, alone_y.slice(0, first, first + rank + 2), 1e-4, 1e-4), "outputs");
    expect(torch::allclose(own.grad(), whole_x.grad().slice(0, first, first + rank + 2), 1e-3, 1e-4),
           "gradients of inputs");
    Tensor gradients = torch::cat({layer->weight.grad(), layer->bias.grad()});
    context.allreduce(gradients.data_ptr<float>(), 6);
    expect(torch::allclose(gradients, torch::cat({alone->weight.grad(), alone->bias.grad()}), 1e-3, 1e-3),
           "gradients of weights");
    expect(torch::allclose(layer->running_mean, alone->running_mean) &&
               torch::allclose(layer->running_var, alone->running_var, 1e-4),
           "running means");
    layer->eval();
    alone->eval();
    expect(torch::allclose(layer->forward(own), alone->forward(own), 1e-4, 1e-4), "evaluation");
  }
}

void test_state_of_an_optimizer(ddl::Context& context) {
  auto model = network(0);
  torch::optim::Adam adam(model->parameters(), torch::optim::AdamOptions(0.01 * (context.rank() + 1)));
  for (int step = 0; step <= context.rank(); ++step) {
    adam.zero_grad();
    const auto [x, y] = samples(step);
    torch::mse_loss(model->forward(x), y).backward();
    adam.step();
  }
  broadcast_optimizer(context, adam);
  broadcast_module(context, *model);
  const auto [x, y] = samples(9);
  adam.zero_grad();
  torch::mse_loss(model->forward(x), y).backward();
  adam.step();
  expect(is_same_on_all(context, flat(*model)), "a step by root's state");
}

}  // namespace

int main() {
  torch::set_num_threads(1);
  return ddl::test::run_on_ranks({
      {"ranks train as one process", test_ranks_train_as_one_process},
      {"hooks come after accumulation", test_hooks_come_after_accumulation},
      {"gradients stay views", test_gradients_stay_views},
      {"parameters that are not used", test_parameters_that_are_not_used},
      {"slices", test_slices},
      {"batch normalisation", test_batch_norm},
      {"state of an optimizer", test_state_of_an_optimizer},
  });
}
