// Learns to read handwritten digits, on one rank or many, without any framework. What a program of one process needs to
// run on several ranks is in six steps, marked below; docs/guide/training.md has them beside those of other languages.
#include <sched.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <Eigen/Core>

#include <ddl/ddl.hpp>
#include <ddl/training/agreement.hpp>
#include <ddl/training/checkpoint.hpp>
#include <ddl/training/optimizer.hpp>
#include <ddl/training/rates.hpp>
#include <ddl/training/sampler.hpp>
#include <ddl/training/sharded_optimizer.hpp>

#include "digits.h"
#include "network.h"
#include "options.h"

namespace {

using namespace mnist;
namespace training = ddl::training;

/// How many cores the launcher has left to this process.
int own_cores() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  return sched_getaffinity(0, sizeof cores, &cores) == 0 ? CPU_COUNT(&cores) : 1;
}

Eigen::MatrixXf images_of(const Digits& digits, const std::vector<std::uint64_t>& numbers) {
  Eigen::MatrixXf images(static_cast<Eigen::Index>(kPixels), static_cast<Eigen::Index>(numbers.size()));
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const std::uint8_t* const pixels = digits.pixels.data() + numbers[i] * kPixels;
    for (std::size_t pixel = 0; pixel < kPixels; ++pixel)
      images(static_cast<Eigen::Index>(pixel), static_cast<Eigen::Index>(i)) =
          static_cast<float>(pixels[pixel]) / 255.0f;
  }
  return images;
}

std::vector<std::uint8_t> labels_of(const Digits& digits, const std::vector<std::uint64_t>& numbers) {
  std::vector<std::uint8_t> labels;
  for (const std::uint64_t number : numbers) labels.push_back(digits.labels[number]);
  return labels;
}

/// Of all test images: each rank counts those of its share that the network knows.
double accuracy(ddl::Context& context, const Network& network, const Digits& test) {
  const std::vector<std::uint64_t> own =
      training::DistributedSampler(test.count(), context.rank(), context.size(), /*shuffle=*/false).indices();
  std::vector<std::int64_t> known(1, 0);
  constexpr std::size_t kAtOnce = 500;
  for (std::size_t begin = 0; begin < own.size(); begin += kAtOnce) {
    const std::vector<std::uint64_t> some(
        own.begin() + static_cast<std::ptrdiff_t>(begin),
        own.begin() + static_cast<std::ptrdiff_t>(std::min(begin + kAtOnce, own.size())));
    const Eigen::MatrixXf outputs = network.predict(images_of(test, some));
    for (std::size_t i = 0; i < some.size(); ++i) {
      Eigen::Index best = 0;
      outputs.col(static_cast<Eigen::Index>(i)).maxCoeff(&best);
      if (best == test.labels[some[i]]) ++known[0];
    }
  }
  context.allreduce(known, ddl::Op::sum);
  return static_cast<double>(known[0]) / static_cast<double>(test.count());
}

// What differs between an optimizer of which all ranks have the whole, and one of which each has a slice.

template <class Rule>
void wait_for_parameters(training::Optimizer<Rule>&) {}
template <class Rule>
void wait_for_parameters(training::ShardedOptimizer<Rule>& optimizer) {
  optimizer.use_all();
}

template <class Rule>
void save(ddl::Context& context, const std::string& folder, const training::Optimizer<Rule>& optimizer,
          const training::Metadata& metadata) {
  std::vector<training::TensorView> alike = training::views_of(optimizer.parameters());
  for (const training::TensorView& one : optimizer.state()) alike.push_back(one);
  training::save_checkpoint(context, folder, {}, alike, metadata);
}
template <class Rule>
void save(ddl::Context& context, const std::string& folder, const training::ShardedOptimizer<Rule>& optimizer,
          const training::Metadata& metadata) {
  training::save_checkpoint(context, folder, optimizer.state(), training::views_of(optimizer.parameters()),
                            metadata);
}

/// Optimizer: training::Optimizer or training::ShardedOptimizer.
template <class Optimizer>
void train(ddl::Context& context, const Options& options, const Digits& digits, const Digits& test) {
  const auto size = static_cast<std::uint64_t>(context.size());
  const std::uint64_t batch = options.global_batch > 0 ? options.global_batch / size : options.batch;
  if (batch * size > digits.count() || (options.global_batch > 0 && options.global_batch % size != 0))
    throw std::invalid_argument(
        "batches of " + std::to_string(std::max(options.global_batch, options.batch * size)) + " of " +
        std::to_string(digits.count()) + " samples are not the same number for each of " +
        std::to_string(size) + " ranks, or there are too few samples");
  // Each sample of an epoch is one rank's.
  training::DistributedSampler sampler(digits.count(), context.rank(), context.size(), /*shuffle=*/true,
                                       options.seed);

  // Step 3: size times the batch is learnt with size times the rate. A warm-up leads up to it.
  const int scale = options.global_batch > 0 ? 1 : context.size();
  const training::Schedule rate = training::warmup(
      training::constant(training::scaled_rate(options.rate, scale)), scale, options.warmup_epochs);

  // Step 4: the optimizer averages the gradients of all ranks, while the backward pass computes others.
  Network network({static_cast<Eigen::Index>(kPixels), options.hidden, static_cast<Eigen::Index>(kClasses)},
                  options.seed + static_cast<std::uint64_t>(context.rank()));
  Optimizer optimizer(context, network.parameters(), training::Sgd{options.rate, /*momentum=*/0.9});
  network.use(optimizer.parameters());

  // Step 5: all ranks start with the parameters of rank 0, or with those of a checkpoint and all that belongs to them.
  // Another number of ranks may have written it.
  training::broadcast_parameters(context, optimizer.parameters());
  const bool resumes = !options.checkpoint.empty() && training::Checkpoint::exists(options.checkpoint);
  if (training::any_rank(context, resumes)) {
    training::Checkpoint checkpoint(options.checkpoint);
    for (const training::Parameter& one : optimizer.parameters()) {
      if (checkpoint.count(one.name) != one.count)
        throw std::invalid_argument(options.checkpoint +
                                    " is the checkpoint of another network: use the same --hidden");
    }
    training::load_parameters(checkpoint, optimizer.parameters());
    optimizer.load_state(checkpoint);
    const training::Metadata& said = checkpoint.metadata();
    optimizer.steps = std::stoull(said.at("steps"));
    sampler.load_state(
        {std::stoull(said.at("seed")), std::stoull(said.at("epoch")), std::stoull(said.at("done"))});
    if (context.rank() == 0) std::printf("going on after step %s\n", said.at("steps").c_str());
    context.barrier();  // before a rank writes the next one there
  }
  const auto save_all = [&] {
    if (options.checkpoint.empty()) return;
    const training::SamplerState at = sampler.state();
    save(context, options.checkpoint, optimizer,
         {{"steps", std::to_string(optimizer.steps)},
          {"seed", std::to_string(at.seed)},
          {"epoch", std::to_string(at.epoch)},
          {"done", std::to_string(at.done)}});
  };

  while (sampler.epoch() < options.epochs && optimizer.steps < options.max_steps) {
    const std::vector<std::uint64_t> own = sampler.indices();
    const std::uint64_t steps = sampler.common_batches(batch);
    if (steps == 0) {  // another number of ranks has left less than a batch
      sampler.set_epoch(sampler.epoch() + 1);
      continue;
    }
    double sum = 0.0;
    for (std::uint64_t step = 0; step < steps; ++step) {
      const auto first = own.begin() + static_cast<std::ptrdiff_t>(step * batch);
      const std::vector<std::uint64_t> numbers(first, first + static_cast<std::ptrdiff_t>(batch));
      optimizer.rule.rate =
          rate(static_cast<double>(sampler.epoch()) +
               static_cast<double>(sampler.state().done) / static_cast<double>(digits.count()));
      sum += network.backward(images_of(digits, numbers), labels_of(digits, numbers),
                              [&](std::size_t number) { optimizer.ready(number); });
      optimizer.step();
      wait_for_parameters(optimizer);
      sampler.record(batch);
      if (optimizer.steps == options.max_steps) break;
      if (step + 1 < steps && optimizer.steps % options.checkpoint_every == 0) save_all();
    }
    if (sampler.common_batches(batch) > 0) break;  // --max-steps
    const std::uint64_t epoch = sampler.epoch() + 1;
    sampler.set_epoch(epoch);

    // Step 6: what is told is the mean over all ranks, and rank 0 alone prints it. Of a checkpoint, rank 0 writes what all
    // ranks have alike, and each rank what it alone has.
    const double loss =
        training::average_metrics(context, {{"loss", sum / static_cast<double>(steps)}})["loss"];
    const double known = accuracy(context, network, test);
    if (context.rank() == 0)
      std::printf("epoch %d  loss %.4f  accuracy %.4f\n", static_cast<int>(epoch), loss, known);
    save_all();
  }
  if (optimizer.steps == options.max_steps) save_all();
  const double known = accuracy(context, network, test);
  if (context.rank() == 0)
    std::printf("%d rank%s, %d steps: accuracy %.4f over %d images\n", context.size(),
                context.size() == 1 ? "" : "s", static_cast<int>(optimizer.steps), known,
                static_cast<int>(test.count()));
}

/// Ends the process while it is still a member of the job, so that its own exit is the job's first failure.
[[noreturn]] void give_up(const std::exception& error, int exit_code) {
  std::fprintf(stderr, "mnist: %s\n", error.what());
  std::exit(exit_code);
}

}  // namespace

int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  const Options options = parse_options(argc, argv);
  std::optional<ddl::Context> context;  // outside of the block: it is still there when give_up() is called
  try {
    // Step 1: join the job. The launcher has told each process its rank; without one, it is a job of one rank.
    context.emplace();

    // Step 2: each rank has its own part of the host. ddlrun has bound this process to its cores, and more threads than
    // these would be in each other's way. A program on GPUs takes the one with the number context->local_rank().
    Eigen::setNbThreads(own_cores());

    constexpr std::uint64_t kTestImages = 1000;
    const Digits digits =
        options.data.empty() ? draw_digits(options.samples, 1) : read_digits(options.data, "train");
    const Digits test =
        options.data.empty() ? draw_digits(kTestImages, 2) : read_digits(options.data, "t10k");
    if (options.sharded) {
      train<training::ShardedOptimizer<training::Sgd>>(*context, options, digits, test);
    } else {
      train<training::Optimizer<training::Sgd>>(*context, options, digits, test);
    }
    return 0;
  } catch (const std::invalid_argument& error) {
    give_up(error, 2);
  } catch (const std::exception& error) {
    give_up(error, 1);
  }
}
