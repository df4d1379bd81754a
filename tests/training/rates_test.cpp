#include "ddl/training/rates.hpp"

#include <cmath>
#include <string>
#include <vector>

#include "support/catch.h"

namespace rates_table {

using namespace ddl::training;  // NOLINT(google-build-using-namespace): this test is about nothing else

struct Row {
  std::string what;
  Schedule schedule;
  double time;
  double expected;
};

const std::vector<Row>& rows() {
  const Schedule goyal = warmup(steps(3.2, {30, 60, 80}), 32);
  const Schedule small = warmup(constant(0.4), 4);
  static const std::vector<Row> kRows = {
      {"constant", constant(0.1), 77, 0.1},
      // 5 epochs of 10 steps on 4 ranks: 0.4 (1 + t / 5 * 3) / 4 = 0.1 + 0.06 t.
      {"warm-up, first batch", small, time_of_step(0, 10), 0.106},
      {"warm-up, second batch", small, time_of_step(1, 10), 0.112},
      {"warm-up, first of the second epoch", small, time_of_step(10, 10), 0.166},
      {"warm-up, last batch", small, time_of_step(49, 10), 0.4},
      {"warm-up, the batch before", small, time_of_step(48, 10), 0.394},
      {"behind the warm-up", small, time_of_step(50, 10), 0.4},
      {"warm-up before the start", small, -1, 0.1},
      {"no warm-up", warmup(constant(0.4), 4, 0), -1, 0.4},
      {"one rank warms up nothing", warmup(constant(0.4), 1), 0, 0.4},
      // Goyal et al.: 0.1 for each 256 samples; 8192 samples are 32 times as many.
      {"32 ranks, at the start", goyal, 0, 0.1},
      {"32 ranks, in the middle of the warm-up", goyal, 2.5, 1.65},
      {"32 ranks, warm", goyal, 5, 3.2},
      {"before the first step", goyal, 29.99, 3.2},
      {"first step", goyal, 30, 0.32},
      {"second step", goyal, 60, 0.032},
      {"before the third step", goyal, 79.5, 0.032},
      {"third step", goyal, 80, 0.0032},
      {"a step by a half", steps(1, {1, 2}, 0.5), 2, 0.25},
      {"no steps", steps(1, {}), 1000, 1},
      {"cosine, start", cosine(0.8, 100), 0, 0.8},
      {"cosine, a third", cosine(0.8, 90), 30, 0.6},  // cos(pi / 3) = 1 / 2
      {"cosine, half", cosine(0.8, 100), 50, 0.4},
      {"cosine, end", cosine(0.8, 100), 100, 0},
      {"cosine, behind the end", cosine(0.8, 100), 150, 0},
      {"cosine to another rate, half", cosine(1, 4, 0.2), 2, 0.6},
      {"cosine to another rate, behind the end", cosine(1, 4, 0.2), 9, 0.2},
      {"straight line, a quarter", polynomial(0.8, 100), 25, 0.6},
      {"polynomial, half", polynomial(0.8, 100, 2), 50, 0.2},
      {"polynomial, behind the end", polynomial(0.8, 100, 2), 101, 0},
      {"polynomial to another rate, half", polynomial(1, 10, 2, 0.2), 5, 0.4},
      {"inverse square root, start", inverse_sqrt(2, 100), 0, 0},
      {"inverse square root, half of the warm-up", inverse_sqrt(2, 100), 50, 1},
      {"inverse square root, peak", inverse_sqrt(2, 100), 100, 2},
      {"inverse square root, behind it", inverse_sqrt(2, 100), 400, 1},
      // Vaswani et al.: 512^-0.5 * min(step^-0.5, step * 4000^-1.5).
      {"transformer, first step", inverse_sqrt(1 / std::sqrt(512 * 4000.0), 4000), 1, 1.746928107421711e-7},
      {"transformer, step 16000", inverse_sqrt(1 / std::sqrt(512 * 4000.0), 4000), 16000,
       3.493856214843422e-4},
      {"one behind the other, first", followed_by(constant(1), 3, polynomial(0.5, 10)), 2.9, 1},
      {"one behind the other, next", followed_by(constant(1), 3, polynomial(0.5, 10)), 8, 0.25},
  };
  return kRows;
}

}  // namespace rates_table

TEST_CASE("rates_table") {
  for (const rates_table::Row& row : rates_table::rows()) {
    INFO(row.what);
    CHECK(row.schedule(row.time) == Approx(row.expected).epsilon(1e-12).margin(1e-15));
  }
  CHECK(ddl::training::scaled_rate(0.1, 32) == Approx(3.2));
}

TEST_CASE("the rate of the last batch of a warm-up is the full one to the bit") {
  for (const int size : {1, 2, 3, 7, 100}) {
    const auto schedule = ddl::training::warmup(ddl::training::constant(0.4), size, 3);
    CHECK(schedule(ddl::training::time_of_step(3 * 7 - 1, 7)) == 0.4);
    CHECK(schedule(0) == 0.4 / size);
  }
}

TEST_CASE("schedules refuse what has no meaning") {
  using Catch::Matchers::Contains;
  using namespace ddl::training;  // NOLINT(google-build-using-namespace): this test is about nothing else
  CHECK_THROWS_WITH(steps(1, {60, 30}), Contains("must rise"));
  CHECK_THROWS_WITH(cosine(1, 0), Contains("above 0"));
  CHECK_THROWS_WITH(polynomial(1, -1), Contains("above 0"));
  CHECK_THROWS_WITH(polynomial(1, 1, 0), Contains("power"));
  CHECK_THROWS_WITH(inverse_sqrt(1, 0), Contains("warm-up"));
  CHECK_THROWS_WITH(warmup(constant(1), 0), Contains("at least one rank"));
  CHECK_THROWS_WITH(time_of_step(0, 0), Contains("at least one step"));
  CHECK_THROWS_AS(time_of_step(0, 0), ddl::Error);
}

TEST_CASE("momentum is corrected only where the velocity has the rate in it") {
  using ddl::training::momentum_correction;
  using ddl::training::Velocity;
  CHECK(momentum_correction(Velocity::kHasRate, 0.1, 0.4) == Approx(4));
  CHECK(momentum_correction(Velocity::kHasRate, 0.4, 0.04) == Approx(0.1));
  CHECK(momentum_correction(Velocity::kHasRate, 0, 0.4) == 1);
  CHECK(momentum_correction(Velocity::kHasNoRate, 0.1, 0.4) == 1);

  // The same weights by both forms, for any rates: the first one with the correction, the second one without.
  const std::vector<double> rates = {0.1, 0.1, 0.4, 0.4, 0.04, 0.004};
  const std::vector<double> gradients = {1, -2, 3, 0.5, -1, 4};
  double old = rates[0], v = 0, u = 0, by_v = 0, by_u = 0, uncorrected_v = 0, uncorrected = 0;
  for (std::size_t i = 0; i < rates.size(); ++i) {
    v = 0.9 * v * momentum_correction(Velocity::kHasRate, old, rates[i]) + rates[i] * gradients[i];
    by_v -= v;
    u = 0.9 * u * momentum_correction(Velocity::kHasNoRate, old, rates[i]) + gradients[i];
    by_u -= rates[i] * u;
    uncorrected_v = 0.9 * uncorrected_v + rates[i] * gradients[i];
    uncorrected -= uncorrected_v;
    old = rates[i];
  }
  CHECK(by_v == Approx(by_u));
  CHECK(uncorrected != Approx(by_u));
}
