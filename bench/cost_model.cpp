#include "bench/cost_model.h"

#include <array>
#include <cmath>
#include <limits>
#include <optional>

#include "base/error.h"
#include "bench/statistics.h"

namespace ddl::bench {
namespace {

constexpr std::size_t kTerms = 3;
using Terms = std::array<double, kTerms>;

// One point's equation, divided by its time: what the terms' coefficients are to add up to is 1.
Terms equation_of(const CostPoint& point) {
  const CostShape shape = cost_shape(point.what, point.ranks, point.bytes);
  return {shape.steps / point.seconds, shape.sent / point.seconds, shape.combined / point.seconds};
}

// Least squares by normal equations, with the terms of the mask only; the others are 0. Nothing if they cannot be told
// apart. Columns are scaled to length 1 first: steps are few, and bytes many.
std::optional<Terms> solve(const std::vector<Terms>& equations, unsigned mask) {
  Terms length{};
  for (const Terms& equation : equations) {
    for (std::size_t i = 0; i < kTerms; ++i) length[i] += equation[i] * equation[i];
  }
  for (double& one : length) one = std::sqrt(one);
  std::array<std::array<double, kTerms + 1>, kTerms> rows{};
  for (std::size_t i = 0; i < kTerms; ++i) {
    if ((mask >> i & 1) == 0) {
      rows[i][i] = 1;
      continue;
    }
    if (length[i] == 0) return std::nullopt;
    for (const Terms& equation : equations) {
      for (std::size_t j = 0; j < kTerms; ++j) {
        if ((mask >> j & 1) != 0 && length[j] > 0)
          rows[i][j] += equation[i] / length[i] * (equation[j] / length[j]);
      }
      rows[i][kTerms] += equation[i] / length[i];
    }
  }
  constexpr double kTooAlike = 1e-6;
  for (std::size_t i = 0; i < kTerms; ++i) {  // the matrix is positive definite: no pivoting
    if (rows[i][i] < kTooAlike) return std::nullopt;
    for (std::size_t below = i + 1; below < kTerms; ++below) {
      const double factor = rows[below][i] / rows[i][i];
      for (std::size_t j = i; j <= kTerms; ++j) rows[below][j] -= factor * rows[i][j];
    }
  }
  Terms result{};
  for (std::size_t i = kTerms; i-- > 0;) {
    double value = rows[i][kTerms];
    for (std::size_t j = i + 1; j < kTerms; ++j) value -= rows[i][j] * result[j];
    result[i] = value / rows[i][i];
  }
  for (std::size_t i = 0; i < kTerms; ++i) {
    if ((mask >> i & 1) != 0) result[i] /= length[i];
  }
  return result;
}

double squares_left(const std::vector<Terms>& equations, const Terms& coefficients) {
  double sum = 0;
  for (const Terms& equation : equations) {
    double error = -1;
    for (std::size_t i = 0; i < kTerms; ++i) error += equation[i] * coefficients[i];
    sum += error * error;
  }
  return sum;
}

}  // namespace

CostShape cost_shape(Collective what, int ranks, std::uint64_t bytes) {
  const auto size = static_cast<double>(bytes);
  const double others = static_cast<double>(ranks - 1) / ranks;
  const double levels = std::ceil(std::log2(ranks));
  switch (what) {
    case Collective::kAllreduce: return {levels, 2 * others * size, others * size};
    case Collective::kAllgather: return {levels, others * size, 0};
    case Collective::kAlltoall: return {levels, others * size, 0};
    case Collective::kBroadcast: return {levels, ranks > 1 ? size : 0, 0};
    case Collective::kReduceScatter: return {levels, others * size, others * size};
  }
  return {};
}

CostModel fit(const std::vector<CostPoint>& points) {
  DDL_CHECK(!points.empty(), "no points");
  std::vector<Terms> equations;
  for (const CostPoint& point : points) equations.push_back(equation_of(point));
  // Of all subsets of the three terms, the one that leaves least and needs no negative cost. Earlier masks have fewer terms
  // of those that follow, and a later one must be better by more than rounding.
  Terms best{};
  double left = std::numeric_limits<double>::infinity();
  for (unsigned mask = 1; mask < 1U << kTerms; ++mask) {
    const auto found = solve(equations, mask);
    if (!found) continue;
    bool is_possible = true;
    for (const double coefficient : *found) is_possible = is_possible && coefficient >= 0;
    if (!is_possible) continue;
    const double now = squares_left(equations, *found);
    if (now >= left * (1 - 1e-9)) continue;
    best = *found;
    left = now;
  }
  CostModel model{best[0], best[1], best[2], 0, 0};
  std::vector<double> errors;
  for (const CostPoint& point : points) {
    const double predicted = predict(model, point.what, point.ranks, point.bytes);
    errors.push_back(std::abs(predicted / point.seconds - 1));
    model.worst_error = std::max(model.worst_error, errors.back());
  }
  model.median_error = median(std::move(errors));
  return model;
}

double predict(const CostModel& model, Collective what, int ranks, std::uint64_t bytes) {
  const CostShape shape = cost_shape(what, ranks, bytes);
  return model.alpha * shape.steps + model.beta * shape.sent + model.gamma * shape.combined;
}

}  // namespace ddl::bench
