#include "ddl/training/update.hpp"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "ddl/training/sharded_optimizer.hpp"
#include "support/catch.h"

namespace update_table {

using namespace ddl::training;  // NOLINT(google-build-using-namespace): this test is about nothing else

/// One element, 1 at first, after each of these gradients.
template <class T, class Rule>
std::vector<T> trained(const Rule& rule, const std::vector<T>& gradients) {
  std::vector<std::vector<T>> memory(rule.slots().size(), std::vector<T>(1, 0));
  std::vector<T*> slots;
  for (auto& slot : memory) slots.push_back(slot.data());
  std::vector<T> values;
  T weight = 1;
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    rule.apply(&weight, &gradients[i], slots.data(), 1, i + 1);
    values.push_back(weight);
  }
  return values;
}

template <class Rule>
void compare(const Rule& rule, const std::vector<double>& expected) {
  const std::vector<double> gradients{0.5, -0.25, 1.0};
  const std::vector<double> values = trained<double>(rule, gradients);
  REQUIRE(values.size() == expected.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    CAPTURE(i, values[i], expected[i]);
    CHECK(std::abs(values[i] - expected[i]) < 1e-12);
  }
}

TEST_CASE("an optimizer's steps are those of its formula") {
  SECTION("SGD") { compare(Sgd{0.1}, {0.95, 0.975, 0.875}); }
  SECTION("momentum") {
    // u = 0.5, 0.9 * 0.5 - 0.25 = 0.2, 0.9 * 0.2 + 1 = 1.18
    Sgd rule{0.1, 0.9};
    compare(rule, {0.95, 0.93, 0.812});
  }
  SECTION("Nesterov's momentum") {
    // g + 0.9 u = 0.95, -0.25 + 0.18 = -0.07, 1 + 1.062 = 2.062
    Sgd rule{0.1, 0.9, 0.0, 0.0, true};
    compare(rule, {0.905, 0.912, 0.7058});
  }
  SECTION("decay of weights and dampening") {
    // g = 0.6, u = 0.6, w = 0.94; g = -0.156, u = 0.54 - 0.078 = 0.462, w = 0.8938; g = 1.08938, u = 0.4158 + 0.54469
    Sgd rule{0.1, 0.9, 0.5, 0.1};
    compare(rule, {0.94, 0.8938, 0.797751});
  }
  SECTION("Adam") {
    // The first step is rate * sign(g), but for epsilon.
    const double first = 1 - 0.1 * (0.5 / (0.5 + 1e-8));
    const double mean = 0.9 * 0.05 - 0.025, squares = 0.999 * 0.00025 + 0.001 * 0.0625;
    const double second =
        first - 0.1 / (1 - 0.81) * mean / (std::sqrt(squares) / std::sqrt(1 - 0.999 * 0.999) + 1e-8);
    Adam rule{0.1};
    const std::vector<double> values = trained<double>(rule, {0.5, -0.25});
    CHECK(std::abs(values[0] - first) < 1e-12);
    CHECK(std::abs(values[1] - second) < 1e-12);
  }
  SECTION("AdamW") {
    Adam rule{0.1};
    rule.weight_decay = 0.5;
    rule.decoupled = true;
    CHECK(std::abs(trained<double>(rule, {0.5})[0] - (0.95 - 0.1 * (0.5 / (0.5 + 1e-8)))) < 1e-12);
    rule.decoupled = false;  // g = 0.5 + 0.5, whose sign alone counts
    CHECK(std::abs(trained<double>(rule, {0.5})[0] - 0.9) < 1e-8);
  }
  SECTION("Adagrad") {
    // sums 0.25, 0.3125, 1.3125
    Adagrad rule{0.1, 0.0};
    compare(rule, {0.9, 0.9 + 0.025 / std::sqrt(0.3125),
                   0.9 + 0.025 / std::sqrt(0.3125) - 0.1 / std::sqrt(1.3125)});
  }
  SECTION("RMSprop") {
    // squares 0.125, 0.09375, 0.546875
    RmsProp rule{0.1, 0.5, 0.0};
    const double first = 1 - 0.05 / std::sqrt(0.125), second = first + 0.025 / std::sqrt(0.09375);
    compare(rule, {first, second, second - 0.1 / std::sqrt(0.546875)});
  }
}

/// Gradients of all magnitudes.
float gradient(std::size_t i) { return std::ldexp(static_cast<float>(i * 2654435761u % 1000) - 499.5f, -9); }

template <class Rule>
void compare_parts(Rule rule) {
  constexpr std::size_t kCount = 1003;
  std::vector<float> whole(kCount, 0.5f), parts = whole, gradients(kCount);
  for (std::size_t i = 0; i < kCount; ++i) gradients[i] = gradient(i);
  std::vector<std::vector<float>> slots(rule.slots().size(), std::vector<float>(kCount, 0)), cut = slots;
  const auto pointers = [](std::vector<std::vector<float>>& of, std::size_t begin) {
    std::vector<float*> all;
    for (auto& one : of) all.push_back(one.data() + begin);
    return all;
  };
  for (std::uint64_t step = 1; step < 4; ++step) {
    rule.apply(whole.data(), gradients.data(), pointers(slots, 0).data(), kCount, step);
    for (std::size_t begin = 0, length = 1; begin < kCount; begin += length, length = length * 5 % 29 + 1) {
      length = std::min(length, kCount - begin);
      rule.apply(parts.data() + begin, gradients.data() + begin, pointers(cut, begin).data(), length, step);
    }
    CHECK(whole == parts);
    CHECK(slots == cut);
  }
}

TEST_CASE("an update of parts gives the bits of an update of all") {
  compare_parts(Sgd{0.1});
  compare_parts(Sgd{0.1, 0.9, 0.1, 0.01, true});
  compare_parts(Adam{});
  compare_parts(Adam{0.01, 0.8, 0.99, 1e-6, 0.1, true});
  compare_parts(Adagrad{});
  compare_parts(RmsProp{0.01, 0.9, 1e-8, 0.1});
}

TEST_CASE("buckets hold the last parameters first, by type, and are filled up to equal slices") {
  std::vector<Parameter> parameters{
      {"a", nullptr, nullptr, 10, DDL_FLOAT32},  {"b", nullptr, nullptr, 7, DDL_BFLOAT16},
      {"c", nullptr, nullptr, 100, DDL_FLOAT32}, {"d", nullptr, nullptr, 90, DDL_FLOAT32},
      {"e", nullptr, nullptr, 3, DDL_BFLOAT16},
  };
  const std::vector<Bucket> buckets = buckets_of(parameters, 3, 600);
  REQUIRE(buckets.size() == 3);
  // e and b: 10 elements of 2 bytes; 3 slices of at least 64.
  CHECK(buckets[0].dtype == DDL_BFLOAT16);
  CHECK(buckets[0].count == 3 * 64);
  REQUIRE(buckets[0].places.size() == 2);
  CHECK(buckets[0].places[0].parameter == 4);
  CHECK(buckets[0].places[1].parameter == 1);
  CHECK(buckets[0].places[1].begin == 3);
  // d and c have 760 bytes, so a is alone.
  CHECK(buckets[1].places.size() == 2);
  CHECK(buckets[1].places[1].begin == 90);
  CHECK(buckets[1].count == 192);
  CHECK(buckets[2].places.size() == 1);
  CHECK(buckets[2].count == 96);
  CHECK(buckets_of({}, 4).empty());
}

TEST_CASE("what is no finite number is found, wherever it is") {
  std::vector<float> values(100, 1e30f);
  CHECK_FALSE(overflows(values.data(), values.size()));
  for (const std::size_t at : {std::size_t{0}, std::size_t{50}, std::size_t{99}}) {
    for (const float bad : {INFINITY, -INFINITY, NAN}) {
      std::vector<float> some = values;
      some[at] = bad;
      CHECK(overflows(some.data(), some.size()));
    }
  }
  CHECK(clip_factor(0.5, 1.0) == 1.0);
  CHECK(std::abs(clip_factor(4.0, 1.0) - 0.25) < 1e-6);
}

}  // namespace update_table
