// What ranks do together in a training: this program runs as each of them, under ddlrun.
#include <cmath>
#include <cstdio>
#include <cstring>
#include <functional>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "ddl/training/gradients.hpp"
#include "ddl/training/sharded_optimizer.hpp"
#include "runtime/support/expect.h"
#include "training/ranks.h"

namespace {

using namespace ddl::training;  // NOLINT(google-build-using-namespace): this test is about nothing else
using ddl::conformance::expect;
using ddl::conformance::expect_contains;

void expect_error(ddl_status status, const std::string& part, const std::function<void()>& call) {
  try {
    call();
  } catch (const ddl::Error& error) {
    expect(error.status() == status, "another status: " + std::string(error.what()));
    return expect_contains(error.what(), part);
  }
  expect(false, "no error: " + part);
}

/// The gradient of an element, of one rank in one pass, all different.
double gradient(int rank, std::uint64_t pass, std::size_t parameter, std::size_t i) {
  const std::size_t mixed = (i * 2654435761u + parameter * 40503u + pass * 977u) % 2003 + 31u * rank;
  return std::ldexp(static_cast<double>(mixed) - 1001.0, -10);
}

/// Parameters with odd numbers of elements.
template <class T>
class Model {
 public:
  explicit Model(std::vector<std::size_t> counts = {1, 7, 130, 1000, 4097, 64, 3}) {
    for (std::size_t i = 0; i < counts.size(); ++i) {
      memory_.emplace_back(counts[i]);
      for (std::size_t j = 0; j < counts[i]; ++j)
        memory_[i][j] = static_cast<T>(static_cast<float>(gradient(0, 17, i, j)));
    }
  }
  std::vector<Parameter> parameters() {
    std::vector<Parameter> all;
    for (std::size_t i = 0; i < memory_.size(); ++i)
      all.push_back(parameter("p" + std::to_string(i), memory_[i].data(), memory_[i].size()));
    return all;
  }

 private:
  std::vector<std::vector<T>> memory_;
};

/// A backward pass of this rank: from the last parameter to the first.
template <class T, class Optimizing>
void backward(Optimizing& optimizer, int rank, std::uint64_t pass) {
  const std::vector<Parameter>& parameters = optimizer.parameters();
  for (std::size_t i = parameters.size(); i-- > 0;) {
    auto* const to = static_cast<T*>(parameters[i].gradient);
    for (std::size_t j = 0; j < parameters[i].count; ++j)
      to[j] = static_cast<T>(static_cast<float>(to[j]) + static_cast<float>(gradient(rank, pass, i, j)));
    optimizer.ready(i);
  }
}

std::string bytes_of(const std::vector<Parameter>& parameters) {
  std::string bytes;
  for (const Parameter& one : parameters) bytes.append(static_cast<const char*>(one.data), one.bytes());
  return bytes;
}

void test_gradients(ddl::Context& context) {
  const int rank = context.rank(), size = context.size();
  Model<float> model;
  Gradients gradients(context, model.parameters());
  for (std::uint64_t step = 0; step < 3; ++step) {
    gradients.set_to_zero();
    // Also from another thread.
    std::thread([&] { backward<float>(gradients, rank, step); }).join();
    gradients.finish();
    for (std::size_t i = 0; i < gradients.parameters().size(); ++i) {
      const Parameter& one = gradients.parameters()[i];
      for (std::size_t j = 0; j < one.count; j += 3) {
        double sum = 0;
        for (int from = 0; from < size; ++from) sum += gradient(from, step, i, j);
        expect(std::abs(static_cast<float*>(one.gradient)[j] - sum / size) < 1e-5, "the mean of " + one.name);
      }
    }
  }
  for (std::size_t i = 0; i < gradients.parameters().size(); ++i) {
    expect(reinterpret_cast<std::uintptr_t>(gradients.parameters()[i].gradient) % 64 == 0, "lines of memory");
    gradients.ready(i);
  }
  expect_error(DDL_ERROR_INVALID_ARGUMENT, "\"p1\" was computed more than 1 times",
               [&] { gradients.ready(1); });
  gradients.finish();
}

void test_options_of_gradients(ddl::Context& context) {
  const int rank = context.rank(), size = context.size();
  std::vector<float> a(5, 0), b(4, 0), ga(5), gb(4, 7.0f);
  const std::vector<Parameter> parameters{parameter("a", a.data(), 5, ga.data()),
                                          parameter("b", b.data(), 4, gb.data())};
  const auto run = [&](GradientOptions options, bool everyone_has_b, bool first_has_b) {
    Gradients gradients(context, parameters, std::move(options));
    ga.assign(5, static_cast<float>(rank));
    gb.assign(4, 7.0f);
    gradients.ready(0);
    if (everyone_has_b || (first_has_b && rank == 0)) gradients.ready(1);
    gradients.finish();
  };
  const float mean = static_cast<float>(size - 1) / 2;
  run({}, false, false);
  expect(ga[4] == mean && gb[3] == 0.0f, "a gradient that nobody has is zeros");
  GradientOptions keeps;
  keeps.unused = Unused::kKeep;
  run(keeps, false, false);
  expect(ga[4] == mean && gb[3] == 7.0f, "a gradient that nobody has is kept");
  run(keeps, false, true);
  expect(std::abs(gb[3] - 7.0f / static_cast<float>(size)) < 1e-6f, "a gradient that one rank has is a mean");
  GradientOptions grouped;
  grouped.groups = {{"b", "a"}};
  run(grouped, true, false);
  expect(ga[4] == mean && gb[3] == 7.0f, "a group");
  expect_error(DDL_ERROR_INVALID_ARGUMENT, "\"c\", which is no parameter", [&] {
    grouped.groups = {{"c"}};
    run(grouped, true, false);
  });
  for (const ddl_dtype wire : {DDL_FLOAT16, DDL_BFLOAT16}) {
    GradientOptions narrow;
    narrow.wire = wire;
    narrow.predivide = 2;
    run(narrow, true, false);
    expect(ga[4] == mean && gb[3] == 7.0f, "numbers that 16 bits hold");
  }
  // Two passes before a step are added up by the program.
  GradientOptions passes;
  passes.passes = 2;
  Gradients gradients(context, parameters, passes);
  ga.assign(5, 1.0f);
  gradients.ready(0);
  ga.assign(5, static_cast<float>(rank));
  gradients.ready(0);
  gradients.ready(1);
  gradients.finish();
  expect(ga[4] == mean, "the second pass");
}

/// What the others submit by libddl itself has to be what Gradients submits: names, numbers, priorities and scales.
/// Otherwise the tensors fail.
void test_what_is_submitted(ddl::Context& context) {
  const bool is_first = context.rank() == 0;
  const auto submit = [&](const std::string& name, std::vector<float>& values, std::int32_t priority,
                          double divisor) {
    ddl_async_options options = DDL_ASYNC_OPTIONS_INIT;
    options.priority = priority;
    options.prescale = 1 / divisor;
    options.postscale = divisor;
    options.zeros_if_joined = 1;
    ddl::detail::Handle handle;
    ddl::detail::check(ddl_allreduce_async(context.get(), name.c_str(), values.data(), values.data(),
                                           values.size(), DDL_FLOAT32, DDL_AVERAGE, &options, handle.out()));
    return handle;
  };
  struct Case {
    std::size_t bucket_bytes;
    std::vector<std::vector<std::string>> groups;
    double divisor;
    std::vector<std::pair<std::string, std::pair<std::size_t, std::int32_t>>> tensors;  // number, priority
  };
  // Of a, b and c with 3, 20 and 1 elements, each of which begins at a line of 16 floats. The first parameter has the
  // highest priority, and a bucket that of the first in it.
  for (const Case& one :
       {Case{0, {}, 1, {{"gradient c", {1, 1}}, {"gradient b", {20, 2}}, {"gradient a", {3, 3}}}},
        Case{80, {}, 4, {{"gradients c to b", {36, 2}}, {"gradient a", {3, 3}}}},
        Case{1000, {}, 1, {{"gradients c to a", {51, 3}}}},
        Case{1000, {{"a", "c"}}, 2, {{"gradients a to c", {17, 3}}, {"gradient b", {20, 2}}}}}) {
    std::vector<float> a(3), b(20), c(1);
    GradientOptions options;
    options.bucket_bytes = one.bucket_bytes;
    options.groups = one.groups;
    options.predivide = one.divisor;
    Gradients gradients(
        context, {parameter("a", a.data(), 3), parameter("b", b.data(), 20), parameter("c", c.data(), 1)},
        options);
    if (is_first) {
      for (const Parameter& of : gradients.parameters())
        std::fill_n(static_cast<float*>(of.gradient), of.count, static_cast<float>(context.size()));
      for (std::size_t i = 3; i-- > 0;) gradients.ready(i);
      gradients.finish();
      for (const Parameter& of : gradients.parameters())
        expect(static_cast<float*>(of.gradient)[of.count - 1] == 1.0f, "the mean of " + of.name);
    } else {
      std::vector<std::vector<float>> values;
      std::vector<ddl::detail::Handle> handles;
      for (const auto& [name, terms] : one.tensors) values.emplace_back(terms.first, 0.0f);
      for (std::size_t i = 0; i < values.size(); ++i)
        handles.push_back(submit(one.tensors[i].first, values[i], one.tensors[i].second.second, one.divisor));
      for (ddl::detail::Handle& handle : handles) handle.wait();
    }
  }
  // A tensor that differs fails on all ranks, and the next step is good.
  if (context.size() == 1) return;
  std::vector<float> a(3), wrong(2);
  Gradients gradients(context, {parameter("a", a.data(), 3)});
  if (is_first) {
    gradients.ready(0);
    expect_error(DDL_ERROR_MISMATCH, "different tensors the name \"gradient a\"",
                 [&] { gradients.finish(); });
  } else {
    expect_error(DDL_ERROR_MISMATCH, "gradient a", [&] { submit("gradient a", wrong, 1, 1).wait(); });
  }
  gradients.set_to_zero();
  static_cast<float*>(gradients.parameters()[0].gradient)[2] = static_cast<float>(context.rank());
  gradients.ready(0);
  gradients.finish();
  expect(static_cast<float*>(gradients.parameters()[0].gradient)[2] ==
             static_cast<float>(context.size() - 1) / 2,
         "the step after one that failed");
}

/// Only the first rank computes b in each pass, others never or in the last one alone; nobody computes c.
void test_groups_with_unused_parameters(ddl::Context& context) {
  const bool is_first = context.rank() == 0;
  const auto size = static_cast<float>(context.size());
  for (const Unused unused : {Unused::kZeros, Unused::kKeep}) {
    for (const ddl_dtype wire : {DDL_FLOAT32, DDL_FLOAT16}) {
      for (const bool are_late : {false, true}) {
        std::vector<float> a(5), b(4), c(3), own_memory(4);
        GradientOptions options;
        options.unused = unused;
        options.wire = wire;
        options.passes = 2;
        options.groups = {{"a", "b"}, {"c"}};
        // The first rank has memory of its own for b.
        Gradients gradients(
            context,
            {parameter("a", a.data(), 5), parameter("b", b.data(), 4, is_first ? own_memory.data() : nullptr),
             parameter("c", c.data(), 3)},
            options);
        const auto add = [&](std::size_t number, float value) {
          const Parameter& one = gradients.parameters()[number];
          for (std::size_t i = 0; i < one.count; ++i) static_cast<float*>(one.gradient)[i] += value;
          gradients.ready(number);
        };
        const auto last = [&](std::size_t number) {
          const Parameter& one = gradients.parameters()[number];
          return static_cast<float*>(one.gradient)[one.count - 1];
        };
        for (int step = 0; step < 2; ++step) {
          gradients.set_to_zero();
          std::fill_n(static_cast<float*>(gradients.parameters()[2].gradient), 3, 7.0f);
          for (int pass = 0; pass < 2; ++pass) {
            if (is_first || (are_late && pass == 1)) add(1, 0.5f * size);
            add(0, 1.0f);
          }
          gradients.finish();
          expect(last(0) == 2.0f, "what all ranks have added up in two passes");
          // The first adds up size, each other one half of it if it is late.
          expect(last(1) == (are_late ? 1.0f + (size - 1) / 2 : 1.0f), "what some have not computed");
          expect(last(2) == (unused == Unused::kKeep ? 7.0f : 0.0f), "what nobody has computed");
          expect(gradients.is_used(2) == (unused == Unused::kZeros) && gradients.is_used(1),
                 "who has used it");
        }
      }
    }
  }
}

/// No GPU is here: memory of a CPU with the function that a GPU's program gives.
void test_gradients_that_the_program_sets_to_zero(ddl::Context& context) {
  std::vector<float> a(5), b(4), ga(5, 1.0f), gb(4, 7.0f);
  int calls = 0;
  GradientOptions options;
  options.unused = Unused::kKeep;
  options.zero_on_device = [&](void* memory, std::size_t bytes) {
    ++calls;
    std::memset(memory, 0, bytes);
  };
  const std::vector<Parameter> parameters{parameter("a", a.data(), 5, ga.data()),
                                          parameter("b", b.data(), 4, gb.data())};
  Gradients gradients(context, parameters, options);
  gradients.ready(0);
  gradients.finish();
  expect(ga[4] == 1.0f && gb[3] == 0.0f && calls == 1 && !gradients.is_used(1), "the program's zeros");
  gradients.set_to_zero();
  expect(ga[4] == 0.0f && calls == 3, "all gradients");
  expect_error(DDL_ERROR_INVALID_ARGUMENT, "needs memory there",
               [&] { const Gradients other(context, {parameter("a", a.data(), 5)}, options); });
  options.wire = DDL_FLOAT16;
  expect_error(DDL_ERROR_INVALID_ARGUMENT, "in their own type",
               [&] { const Gradients other(context, parameters, options); });
}

void test_models_that_differ(ddl::Context& context) {
  const bool is_last = context.rank() == context.size() - 1;
  std::vector<float> a(5), b(4);
  std::vector<Parameter> parameters{parameter("a", a.data(), 5), parameter("b", b.data(), is_last ? 3u : 4u)};
  const auto make = [&] { const Gradients gradients(context, parameters); };
  if (context.size() == 1) {
    make();
  } else {
    expect_error(DDL_ERROR_MISMATCH,
                 "parameter 1 differs: rank " + std::to_string(context.size() - 1) + " has \"b\" of 3", make);
  }
  if (is_last) parameters[1].name = "a";
  expect_error(DDL_ERROR_INVALID_ARGUMENT, "two parameters are called \"a\"", make);
}

/// Trains the same model whole and in slices: the bits are the same after each step.
template <class T, class Rule>
void compare(ddl::Context& context, const Rule& rule, std::size_t bucket_bytes, int passes) {
  const int rank = context.rank();
  Model<T> here, there;
  GradientOptions whole_options;
  whole_options.passes = passes;
  Optimizer<Rule> whole(context, here.parameters(), rule, whole_options);
  ShardingOptions options;
  options.bucket_bytes = bucket_bytes;
  options.passes = passes;
  ShardedOptimizer<Rule> sharded(context, there.parameters(), rule, options);
  for (std::uint64_t step = 0; step < 8; ++step) {
    whole.set_to_zero();
    sharded.set_to_zero();
    for (int pass = 0; pass < passes; ++pass) {
      backward<T>(whole, rank, step * 2 + static_cast<unsigned>(pass));
      backward<T>(sharded, rank, step * 2 + static_cast<unsigned>(pass));
    }
    whole.step();
    sharded.step();
    for (std::size_t i = 0; i < sharded.parameters().size(); ++i) sharded.use(i);
    expect(bytes_of(whole.parameters()) == bytes_of(sharded.parameters()),
           "the bits of slices after step " + std::to_string(step));
  }
}

void test_slices_have_the_bits_of_the_whole(ddl::Context& context) {
  for (const std::size_t bucket_bytes : {std::size_t{1}, std::size_t{600}, std::size_t{1} << 20}) {
    compare<float>(context, Sgd{0.1}, bucket_bytes, 1);
    compare<float>(context, Sgd{0.1, 0.9, 0.0, 0.01, true}, bucket_bytes, 2);
    compare<float>(context, Adam{0.01}, bucket_bytes, 1);
    compare<double>(context, Adam{0.01, 0.8, 0.99, 1e-6, 0.1, true}, bucket_bytes, 1);
    compare<float>(context, Adagrad{}, bucket_bytes, 2);
    compare<float>(context, RmsProp{}, bucket_bytes, 1);
  }
}

void test_16_bits_are_updated_in_float(ddl::Context& context) {
  const int rank = context.rank();
  Model<ddl::bfloat16> model;
  ShardingOptions options;
  options.bucket_bytes = 600;
  ShardedOptimizer<Sgd> sharded(context, model.parameters(), Sgd{0.001}, options);
  // Steps that 16 bits would lose: 2^-10 * rate, of elements near 1.
  for (int step = 0; step < 100; ++step) {
    sharded.set_to_zero();
    for (std::size_t i = 0; i < sharded.parameters().size(); ++i) {
      const Parameter& one = sharded.parameters()[i];
      for (std::size_t j = 0; j < one.count; ++j)
        static_cast<ddl::bfloat16*>(one.gradient)[j] = ddl::bfloat16(1.0f);
      sharded.ready(i);
    }
    sharded.step();
    sharded.use_all();
  }
  Model<ddl::bfloat16> fresh;
  const std::vector<Parameter> before = fresh.parameters();
  for (std::size_t i = 0; i < before.size(); ++i) {
    for (std::size_t j = 0; j < before[i].count; ++j) {
      const float was = static_cast<const ddl::bfloat16*>(before[i].data)[j];
      const float is = static_cast<const ddl::bfloat16*>(sharded.parameters()[i].data)[j];
      expect(std::abs(is - (was - 0.1f)) <= 0.004f, "a sum of small steps of " + before[i].name);
    }
  }
  const std::string bytes = bytes_of(sharded.parameters());
  expect(broadcast_bytes(context, bytes) == bytes, "ranks have different parameters");
  (void)rank;
}

/// All ranks' state, by name: what a checkpoint would have.
struct Saved {
  std::map<std::string, std::vector<float>> tensors;

  std::uint64_t count(const std::string& name) const { return tensors.at(name).size(); }
  void read(const std::string& name, std::uint64_t begin, std::uint64_t end, ddl_dtype dtype,
            void* memory) const {
    expect(dtype == DDL_FLOAT32, "the type of " + name);
    std::memcpy(memory, tensors.at(name).data() + begin, (end - begin) * sizeof(float));
  }
  /// Takes the shards of all ranks, which together are all of the state. Collective.
  void gather(ddl::Context& context, const std::vector<Shard>& shards) {
    tensors.clear();
    std::string names;
    for (const Shard& one : shards)
      names += one.name + ' ' + std::to_string(one.begin) + ' ' + std::to_string(one.end) + ' ' +
               std::to_string(one.shape[0]) + '\n';
    std::string values;
    for (const Shard& one : shards)
      values.append(static_cast<const char*>(one.data), (one.end - one.begin) * sizeof(float));
    const std::vector<std::string> all_names = gather_bytes(context, names);
    const std::vector<std::string> all_values = gather_bytes(context, values);
    for (std::size_t rank = 0; rank < all_names.size(); ++rank) {
      const char* from = all_values[rank].data();
      std::istringstream lines(all_names[rank]);
      std::string name;
      std::size_t begin = 0, end = 0, count = 0;
      while (lines >> name >> begin >> end >> count) {
        std::vector<float>& tensor = tensors[name];
        if (tensor.empty()) tensor.assign(count, NAN);
        std::memcpy(tensor.data() + begin, from, (end - begin) * sizeof(float));
        from += (end - begin) * sizeof(float);
      }
    }
    for (const auto& [name, tensor] : tensors) {
      for (const float value : tensor) expect(!std::isnan(value), "nobody has an element of " + name);
    }
  }
};

/// The job goes on with other numbers of ranks, and ends with the bits that one rank has.
void test_state_moves_between_numbers_of_ranks(ddl::Context& context) {
  const Adam rule{0.01};
  Model<float> one_model;
  const ddl::ProcessSet own = context.split(context.rank());
  GradientOptions alone;
  alone.process_set = own.id();
  Optimizer<Adam> whole(context, one_model.parameters(), rule, alone);
  std::string parameters = bytes_of(whole.parameters());
  Saved state;
  std::uint64_t steps = 0;
  for (const int ranks : {2, 3, 1, 4, 2}) {
    if (ranks > context.size()) continue;
    const bool is_in = context.rank() < ranks;
    const ddl::ProcessSet set = context.split(is_in ? 0 : -1);
    if (is_in) {
      Model<float> model;
      std::size_t at = 0;
      for (const Parameter& one : model.parameters()) {
        std::memcpy(one.data, parameters.data() + at, one.bytes());
        at += one.bytes();
      }
      ShardingOptions options;
      options.bucket_bytes = 600;
      options.process_set = set.id();
      ShardedOptimizer<Adam> sharded(context, model.parameters(), rule, options);
      if (steps > 0) sharded.load_state(state);
      sharded.steps = steps;
      for (int i = 0; i < 3; ++i) {
        sharded.set_to_zero();
        backward<float>(sharded, 0, sharded.steps);  // all ranks have the same gradients
        sharded.step();
      }
      sharded.use_all();
      parameters = bytes_of(sharded.parameters());
      state.gather(context, sharded.state());
    } else {
      state.gather(context, {});  // these ranks need it in the next set
    }
    for (int i = 0; i < 3; ++i) {
      whole.set_to_zero();
      backward<float>(whole, 0, whole.steps);
      whole.step();
    }
    steps += 3;
    parameters = broadcast_bytes(context, parameters);
    expect(parameters == bytes_of(whole.parameters()), "the bits after " + std::to_string(ranks) + " ranks");
  }
  if (steps > 0) {
    state.tensors["p3.exp_avg"].push_back(0);
    expect_error(DDL_ERROR_INVALID_ARGUMENT,
                 "\"p3.exp_avg\" has 1001 elements in the checkpoint and 1000 in the program",
                 [&] { whole.load_state(state); });
    state.tensors["p3.exp_avg"].pop_back();
  }
  for (const TensorView& view : whole.state()) {
    if (steps == 0) break;
    const std::vector<float>& tensor = state.tensors.at(view.name);
    expect(tensor.size() == view.shape[0] &&
               std::memcmp(tensor.data(), view.data, tensor.size() * sizeof(float)) == 0,
           "the state of " + view.name);
  }
}

void test_clipping(ddl::Context& context) {
  const int rank = context.rank();
  Model<float> here, there;
  Optimizer<Sgd> whole(context, here.parameters(), Sgd{0.5});
  ShardingOptions options;
  options.bucket_bytes = 600;
  ShardedOptimizer<Sgd> sharded(context, there.parameters(), Sgd{0.5}, options);
  whole.clip_norm = sharded.clip_norm = 3.0;
  for (std::uint64_t step = 0; step < 3; ++step) {
    for (auto* const zero : {&sharded}) zero->set_to_zero();
    whole.set_to_zero();
    backward<float>(whole, rank, step);
    backward<float>(sharded, rank, step);
    const std::string before = bytes_of(whole.parameters());
    whole.step();
    sharded.step();
    sharded.use_all();
    double moved = 0, apart = 0;
    std::size_t at = 0;
    for (std::size_t i = 0; i < whole.parameters().size(); ++i) {
      const Parameter& one = whole.parameters()[i];
      for (std::size_t j = 0; j < one.count; ++j, at += sizeof(float)) {
        float was = 0;
        std::memcpy(&was, before.data() + at, sizeof was);
        const double is = static_cast<const float*>(one.data)[j];
        moved += (is - was) * (is - was);
        apart = std::max(apart, std::abs(is - static_cast<const float*>(sharded.parameters()[i].data)[j]));
      }
    }
    expect(std::abs(std::sqrt(moved) - 1.5) < 1e-3,
           "a step of rate * norm: " + std::to_string(std::sqrt(moved)));
    expect(apart < 1e-6, "slices are clipped alike: " + std::to_string(apart));
  }
}

void test_state_of_root(ddl::Context& context) {
  const int rank = context.rank(), last = context.size() - 1;
  Model<float> model;
  const ddl::ProcessSet own = context.split(rank);
  GradientOptions alone;
  alone.process_set = own.id();
  Optimizer<Adam> optimizer(context, model.parameters(), Adam{0.01}, alone);
  const auto step = [&](int of) {
    optimizer.set_to_zero();
    backward<float>(optimizer, of, optimizer.steps);
    optimizer.step();
  };
  for (int i = 0; i <= rank; ++i) step(rank);
  optimizer.broadcast_state(context, last);
  broadcast_parameters(context, optimizer.parameters(), last);
  expect(optimizer.steps == static_cast<std::uint64_t>(last) + 1, "root's steps");
  step(0);
  const std::string bytes = bytes_of(optimizer.parameters());
  expect(broadcast_bytes(context, bytes, last) == bytes, "a step by root's state");
}

void test_overflow_on_one_rank_skips_all(ddl::Context& context) {
  Model<float> model({100});
  ShardedOptimizer<Sgd> sharded(context, model.parameters(), Sgd{1.0});
  LossScale scaling;
  const std::string before = bytes_of(sharded.parameters());
  for (const bool overflows_somewhere : {true, false}) {
    sharded.set_to_zero();
    auto* const gradients = static_cast<float*>(sharded.parameters()[0].gradient);
    for (int i = 0; i < 100; ++i) gradients[i] = static_cast<float>(scaling.scale);
    if (overflows_somewhere && context.rank() == context.size() - 1) gradients[99] = INFINITY;
    sharded.ready(0);
    const double used = scaling.scale;
    if (scaling.step_is_good(context, sharded.finish_gradients())) {
      sharded.step(used);
    } else {
      sharded.skip_step();
    }
    sharded.use_all();
    expect((bytes_of(sharded.parameters()) == before) == overflows_somewhere, "a step that overflows");
    expect(scaling.scale == 32768.0, "the scale");
  }
  const float first = static_cast<const float*>(sharded.parameters()[0].data)[0];
  float was = 0;
  std::memcpy(&was, before.data(), sizeof was);
  expect(first == was - 1.0f, "the step is divided by the scale");
  scaling.good_steps_to_growth = 3;
  scaling.good_steps = 0;
  for (int i = 0; i < 3; ++i) expect(scaling.step_is_good(context, false), "a good step");
  expect(scaling.scale == 65536.0 && scaling.good_steps == 0, "it grows");
}

void test_memory_of_slices(ddl::Context& context) {
  Model<float> model({300000, 50001, 150000, 10, 10, 200000});
  const ShardedOptimizer<Adam> sharded(context, model.parameters(), Adam{});
  const double formula = 700021 * (8 + 8.0 / context.size());
  expect(std::abs(static_cast<double>(sharded.bytes()) / formula - 1) < 0.02,
         std::to_string(sharded.bytes()) + " bytes instead of " + std::to_string(formula));
}

void test_what_ranks_agree_on(ddl::Context& context) {
  const int rank = context.rank(), size = context.size();
  const auto means = average_metrics(context, {{"loss", rank + 1.0}, {"accuracy", 0.5}});
  expect(means.at("loss") == (size + 1) / 2.0 && means.at("accuracy") == 0.5, "means of metrics");
  std::map<std::string, double> others{{"loss", 1.0}};
  if (rank == size - 1) others["only here"] = 1.0;
  if (size > 1) {
    expect_error(DDL_ERROR_MISMATCH, "only here", [&] { (void)average_metrics(context, others); });
    expect_error(DDL_ERROR_SYSTEM, "of rank 1", [&] {
      throw_on_all(context, rank > 0 ? "of rank " + std::to_string(rank) : "", DDL_ERROR_SYSTEM);
    });
  }
  throw_on_all(context, "");
  // Rank r has r + 1 samples, whose gradients are r each: the mean is over samples.
  const double weight = batch_weight(context, static_cast<std::uint64_t>(rank) + 1);
  std::vector<double> mean{weight * rank};
  context.allreduce(mean, ddl::Op::average);
  double sum = 0, samples = 0;
  for (int one = 0; one < size; ++one) {
    sum += one * (one + 1.0);
    samples += one + 1;
  }
  expect(std::abs(mean[0] - sum / samples) < 1e-12, "unequal batches");
  expect_error(DDL_ERROR_INVALID_ARGUMENT, "no rank has a sample", [&] { (void)batch_weight(context, 0); });
  expect(gather_bytes(context, std::string(static_cast<std::size_t>(rank), 'x')).back().size() + 1 ==
             static_cast<std::size_t>(size),
         "bytes of all ranks");
  Model<float> model;
  const std::vector<Parameter> parameters = model.parameters();
  static_cast<float*>(parameters[2].data)[5] = static_cast<float>(rank);
  broadcast_parameters(context, parameters, size - 1);
  expect(static_cast<float*>(parameters[2].data)[5] == static_cast<float>(size - 1),
         "parameters of the root");
}

}  // namespace

int main() {
  return ddl::test::run_on_ranks({
      {"gradients", test_gradients},
      {"options of gradients", test_options_of_gradients},
      {"what is submitted", test_what_is_submitted},
      {"groups with unused parameters", test_groups_with_unused_parameters},
      {"gradients that the program sets to zero", test_gradients_that_the_program_sets_to_zero},
      {"models that differ", test_models_that_differ},
      {"slices have the bits of the whole", test_slices_have_the_bits_of_the_whole},
      {"16 bits are updated in float", test_16_bits_are_updated_in_float},
      {"state moves between numbers of ranks", test_state_moves_between_numbers_of_ranks},
      {"clipping", test_clipping},
      {"state of root", test_state_of_root},
      {"overflow on one rank skips all", test_overflow_on_one_rank_skips_all},
      {"memory of slices", test_memory_of_slices},
      {"what ranks agree on", test_what_ranks_agree_on},
  });
}
