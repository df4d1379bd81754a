// Training steps with computation, in C++ (ddl/training): how many samples a second a number of ranks computes, how that
// compares with one rank alone, and how much of the communication the computation hides. This program runs as each rank,
// under a launcher, and rank 0 prints a table.
//
//   ddlrun -np 2 training_scaling [MODEL [SECONDS [ROUNDS [here|elsewhere]]]]      MODEL: resnet50, ...
//
// A step computes for SECONDS (1) on one core: products of small matrices, as many for each layer as its share in the
// model's multiplications, a third of them in the forward pass. So the step is that of a part of a sample, or of some,
// and samples a second are those that this core computes. The backward pass says ready() of each gradient behind its
// layer. Kinds of steps alternate, ROUNDS (3) times; medians. Efficiency is that of N ranks, of N times one rank alone;
// "each rank alone" has what they lose by sharing memory and cores, without communication. With "elsewhere" a
// rank waits for as long as its core would compute, as for a GPU, and leaves the core to the communication.
//
// "Hidden" is 1 - (step - step without communication) / communication without computation.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <numeric>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "bench/models.h"
#include "bench/training_memory.h"
#include "ddl/training/optimizer.hpp"
#include "ddl/training/sharded_optimizer.hpp"

namespace {

using namespace ddl::training;  // NOLINT(google-build-using-namespace): this program shows nothing else
using ddl::bench::seconds_since;
using ddl::bench::TrainedMemory;
using Clock = std::chrono::steady_clock;

/// Products of matrices that stay in a core's caches.
class Computation {
 public:
  static constexpr std::size_t kSide = 64;
  static constexpr double kMultiplications = double{kSide} * kSide * kSide;

  Computation() {
    a_.fill(0.5f);
    b_.fill(1.0f / kSide);
  }
  void run(std::uint64_t products) {
    for (std::uint64_t i = 0; i < products; ++i) {
      multiply();
      a_[i % a_.size()] = c_[0];  // each product needs the one before
    }
  }
  float result() const { return c_[0]; }

 private:
  void multiply() {
    for (std::size_t row = 0; row < kSide; ++row) {
      std::array<float, kSide> sums{};
      for (std::size_t i = 0; i < kSide; ++i) {
        const float factor = a_[row * kSide + i];
        for (std::size_t column = 0; column < kSide; ++column)
          sums[column] += factor * b_[i * kSide + column];
      }
      std::copy(sums.begin(), sums.end(), c_.begin() + static_cast<std::ptrdiff_t>(row * kSide));
    }
  }

  std::array<float, kSide * kSide> a_{}, b_{}, c_{};
};

/// Products a second, on this core.
double rate_of(Computation& computation) {
  std::vector<double> rates;
  for (int round = 0; round < 5; ++round) {
    const auto begin = Clock::now();
    computation.run(500);
    rates.push_back(500 / seconds_since(begin));
  }
  std::sort(rates.begin(), rates.end());
  return rates[rates.size() / 2];
}

/// What a step computes for each tensor of a model: products in the forward pass; the backward pass has twice as many.
std::vector<std::uint64_t> products_of(ddl::bench::Model model, double products_of_step) {
  const std::vector<double> shares = ddl::bench::multiplications_of(model);
  const double all = std::accumulate(shares.begin(), shares.end(), 0.0);
  std::vector<std::uint64_t> products;
  double wanted = 0;
  std::uint64_t given = 0;
  for (const double share : shares) {
    wanted += products_of_step / 3 * share / all;
    products.push_back(static_cast<std::uint64_t>(wanted) - given);
    given += products.back();
  }
  return products;
}

class Steps {
 public:
  enum class Where { kHere, kElsewhere };

  Steps(ddl::Context& context, ddl::bench::Model model, double seconds, Where where)
      : counts_(ddl::bench::tensors_of(model)), where_(where) {
    double rate = rate_of(computation_);
    context.broadcast(&rate, 1, 0);
    products_ = products_of(model, rate * seconds);
    rate_ = rate;
    const std::vector<double> work = ddl::bench::multiplications_of(model);
    const auto products = std::accumulate(products_.begin(), products_.end(), std::uint64_t{0});
    samples_ = static_cast<double>(products) * Computation::kMultiplications /
               std::accumulate(work.begin(), work.end(), 0.0);
  }

  const std::vector<std::uint64_t>& counts() const { return counts_; }
  double samples() const { return samples_; }  ///< of a step of one rank
  double gigaflops() const { return 2 * rate_ * Computation::kMultiplications / 1e9; }
  /// So that nothing is optimised away.
  float result() const { return computation_.result(); }

  /// Seconds of a step: the mean of two, as the first forward pass hides what the step before it has left.
  template <class Optimizing>
  double time(Optimizing& optimizer, bool computes) {
    const auto begin = Clock::now();
    for (int step = 0; step < 2; ++step) {
      for (std::size_t i = 0; i < products_.size(); ++i) {
        use(optimizer, i);
        if (computes) compute(products_[i]);
      }
      for (std::size_t i = products_.size(); i-- > 0;) {
        if (computes) compute(2 * products_[i]);
        optimizer.ready(i);
      }
      optimizer.step();
    }
    for (std::size_t i = 0; i < products_.size(); ++i) use(optimizer, i);
    return seconds_since(begin) / 2;
  }

 private:
  void compute(std::uint64_t products) {
    if (where_ == Where::kHere) return computation_.run(products);
    std::this_thread::sleep_for(std::chrono::duration<double>(static_cast<double>(products) / rate_));
  }
  static void use(Optimizer<Sgd>&, std::size_t) {}
  static void use(ShardedOptimizer<Sgd>& optimizer, std::size_t number) { optimizer.use(number); }

  std::vector<std::uint64_t> counts_;
  std::vector<std::uint64_t> products_;
  Computation computation_;
  double rate_ = 0, samples_ = 0;
  Where where_;
};

double median_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

struct Kind {
  const char* name;
  std::function<double()> seconds_of_step;
  std::vector<double> seconds = {};

  double median() const { return median_of(seconds); }
  /// How much longer its steps take than another kind's, in the same round.
  double longer_than(const Kind& other) const {
    std::vector<double> differences;
    for (std::size_t i = 0; i < seconds.size(); ++i) differences.push_back(seconds[i] - other.seconds[i]);
    return median_of(differences);
  }
};

void run(ddl::Context& context, ddl::bench::Model model, double seconds, int rounds, Steps::Where where) {
  Steps steps(context, model, seconds, where);
  const int size = context.size();
  // Sets of their own, as libddl learns of each which gradients come next.
  const ddl::ProcessSet own = context.split(context.rank()), all = context.split(0), cut = context.split(0);
  GradientOptions of_all, of_own;
  of_all.process_set = all.id();
  of_own.process_set = own.id();
  ShardingOptions of_cut;
  of_cut.process_set = cut.id();
  TrainedMemory memory(steps.counts());
  Optimizer<Sgd> whole(context, memory.parameters(), Sgd{0.01, 0.9}, of_all);
  Optimizer<Sgd> alone(context, whole.parameters(), Sgd{0.01, 0.9}, of_own);
  // It moves what it is given to memory of its own.
  ShardedOptimizer<Sgd> sliced(context, TrainedMemory(steps.counts()).parameters(), Sgd{0.01, 0.9}, of_cut);
  std::array<Kind, 6> kinds{{
      {"one rank, the others wait", [&] { return context.rank() > 0 ? 0.0 : steps.time(alone, true); }},
      {"each rank alone", [&] { return steps.time(alone, true); }},
      {"whole on each rank", [&] { return steps.time(whole, true); }},
      {"in slices", [&] { return steps.time(sliced, true); }},
      {"nothing computed, alone", [&] { return steps.time(alone, false); }},
      {"nothing computed, whole", [&] { return steps.time(whole, false); }},
  }};
  for (int round = -1; round < rounds;
       ++round) {  // in the first one, libddl learns the order of the gradients
    for (Kind& kind : kinds) {
      context.barrier();
      double time = kind.seconds_of_step();
      context.allreduce(&time, 1, ddl::Op::max);
      if (round >= 0) kind.seconds.push_back(time);
    }
  }
  if (context.rank() != 0) return;
  const auto& [single, own_steps, wholes, slices, idle_alone, idle_whole] = kinds;
  const double communication = idle_whole.longer_than(idle_alone);
  std::printf("%s, %zu tensors, %d ranks, SGD; a step of a rank is %.3f samples, at %.1f GFLOP/s\n",
              ddl::bench::name_of(model), steps.counts().size(), size, steps.samples(), steps.gigaflops());
  std::printf("  %-28s %10s %14s %12s %8s\n", "", "ms a step", "samples/s", "efficiency", "hidden");
  const auto print = [&](const Kind& kind, int ranks, bool communicates) {
    const double time = kind.median();
    std::printf("  %-28s %10.1f %14.3f %12.3f", kind.name, 1e3 * time, ranks * steps.samples() / time,
                single.median() / time);
    // Less than that is lost among what times vary by.
    if (communicates && communication > 0.02 * own_steps.median())
      std::printf(" %8.2f", 1 - kind.longer_than(own_steps) / communication);
    std::printf("\n");
  };
  print(single, 1, false);
  print(own_steps, size, false);
  print(wholes, size, size > 1);
  print(slices, size, size > 1);
  std::printf("  communication without computation, ms %.1f (%g)\n", 1e3 * communication,
              static_cast<double>(steps.result()));
}

}  // namespace

int main(int argc, char** argv) {
  const auto model = ddl::bench::parse_model(argc > 1 ? argv[1] : "resnet50");
  const double seconds = argc > 2 ? std::atof(argv[2]) : 1.0;
  const int rounds = argc > 3 ? std::atoi(argv[3]) : 3;
  const std::string_view where = argc > 4 ? argv[4] : "here";
  const bool is_elsewhere = where == "elsewhere";
  if (!model || rounds < 1 || seconds <= 0 || (!is_elsewhere && where != "here")) {
    std::fprintf(stderr, "usage: training_scaling [MODEL [SECONDS [ROUNDS [here|elsewhere]]]]\n");
    return 2;
  }
  try {
    ddl::Context context;
    run(context, *model, seconds, rounds, is_elsewhere ? Steps::Where::kElsewhere : Steps::Where::kHere);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "training_scaling: %s\n", error.what());
    std::_Exit(1);
  }
}
