#include "bench/cost_model.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text_table.h"
#include "bench/report.h"
#include "bench/statistics.h"

namespace ddl::bench {
namespace {

constexpr std::size_t kTerms = 3;
using Terms = std::array<double, kTerms>;

// The equation of one point, divided by its measured time: the right-hand side is 1, and its residual is a relative
// error.
Terms equation_of(const CostPoint& point) {
  const CostShape shape = cost_shape(point.what, point.ranks, point.bytes);
  return {shape.steps / point.seconds, shape.sent / point.seconds, shape.combined / point.seconds};
}

// Least squares by normal equations, with the terms of the mask only; the others are 0. Nothing if the terms are
// linearly dependent in these points. Columns are scaled to length 1 first, because numbers of steps are small and
// those of bytes large.
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
  constexpr double kMinPivot = 1e-6;
  for (std::size_t i = 0; i < kTerms; ++i) {  // the matrix is positive definite: no pivoting
    if (rows[i][i] < kMinPivot) return std::nullopt;
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

double sum_of_squares(const std::vector<Terms>& equations, const Terms& coefficients) {
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
    case Collective::kAllgather:
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
  // Takes the subset of the three terms with the smallest error and without a negative cost. A mask is tried after
  // all of its subsets, and must be better than them by more than rounding errors.
  Terms best{};
  double smallest = std::numeric_limits<double>::infinity();
  for (unsigned mask = 1; mask < 1U << kTerms; ++mask) {
    const auto found = solve(equations, mask);
    if (!found) continue;
    bool is_possible = true;
    for (const double coefficient : *found) is_possible = is_possible && coefficient >= 0;
    if (!is_possible) continue;
    const double now = sum_of_squares(equations, *found);
    if (now >= smallest * (1 - 1e-9)) continue;
    best = *found;
    smallest = now;
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

namespace {

constexpr const char* kOnOneHost = "on one host";
constexpr int kRanksToPredict[] = {16, 64, 256, 1024};
constexpr std::uint64_t kSizesToPredict[] = {4, 64 << 10, 1 << 20, 16 << 20, 256 << 20};

// The points of one contender on one network.
struct ModelSeries {
  std::vector<CostPoint> points;
  std::set<int> ranks;
  bool shared_cpus = false;  // whether some points have more ranks than CPUs
};
// By the network and the contender's label.
using AllSeries = std::map<std::pair<std::string, std::string>, ModelSeries>;

std::string network_of(const nlohmann::json& settings) {
  if (settings.at("hosts").get<int>() == 1) return kOnOneHost;
  return settings.at("rate").is_null() ? "between hosts"
                                       : "between hosts at " + settings.at("rate").get<std::string>();
}

bool is_modelled(const nlohmann::json& contender) {
  const std::string name = contender.at("name");
  return contender.at("again_of").is_null() && !name.ends_with("floor") && !name.ends_with("limit");
}

void add_file(const nlohmann::json& report, AllSeries& all) {
  const nlohmann::json& settings = report.at("settings");
  const auto what = parse_collective(report.at("benchmark").get<std::string>());
  const int ranks = settings.at("ranks");
  const int hosts = settings.at("hosts");
  if (!what) throw std::invalid_argument("it is not a result of a collective");
  if (hosts > 1 && hosts != ranks)
    throw std::invalid_argument("it has several ranks on each of several hosts");
  std::map<std::string, std::string> labels;
  for (const auto& contender : report.at("entrants")) {
    if (is_modelled(contender)) labels[contender.at("name")] = contender.at("label");
  }
  for (const auto& one : report.at("cases")) {
    for (const auto& figures : one.at("figures")) {
      const auto label = labels.find(figures.at("entrant"));
      if (label == labels.end()) continue;
      ModelSeries& series = all[{network_of(settings), label->second}];
      series.points.push_back({*what, ranks, one.at("bytes"), figures.at("p50_seconds")});
      series.ranks.insert(ranks);
      series.shared_cpus = series.shared_cpus || ranks > std::ssize(settings.at("cpus"));
    }
  }
}

std::string series_text(const std::string& network, const std::string& label, const ModelSeries& series) {
  const CostModel model = fit(series.points);
  std::string text = fmt::format(
      "{}, {}: a model, not a measurement\n"
      "  alpha {} a step, beta {:.3g} ns a byte sent, gamma {}; fitted to {} points of {} to {} ranks{}, "
      "from which it differs by {:.0f}% (median) to {:.0f}% (maximum)\n",
      label, network, time_text(model.alpha), model.beta * 1e9,
      model.gamma > 0 ? fmt::format("{:.3g} ns a byte combined", model.gamma * 1e9) : "part of beta",
      series.points.size(), *series.ranks.begin(), *series.ranks.rbegin(),
      series.shared_cpus ? ", some sharing CPUs" : "", model.median_error * 100, model.worst_error * 100);
  std::vector<std::string> head{"model"};
  for (const std::uint64_t bytes : kSizesToPredict) head.push_back(size_text(bytes));
  TextTable table(head);
  for (const Collective what : all_collectives()) {
    if (std::none_of(series.points.begin(), series.points.end(),
                     [what](const CostPoint& point) { return point.what == what; }))
      continue;
    for (const int ranks : kRanksToPredict) {
      std::vector<std::string> row{fmt::format("{}, {} ranks", name_of(what), ranks)};
      for (const std::uint64_t bytes : kSizesToPredict)
        row.push_back(time_text(predict(model, what, ranks, whole_bytes(what, bytes, ranks))));
      table.add(row);
    }
  }
  const bool is_one_host = network == kOnOneHost;
  return text + table.text(TextTable::Align::kRight, "  ") +
         (is_one_host ? "  The model does not include that the ranks of one host share its memory.\n\n"
                      : "\n");
}

}  // namespace

Result<std::string> model_report(const std::vector<ResultFile>& files) {
  AllSeries all;
  for (const ResultFile& file : files) {
    try {
      add_file(nlohmann::json::parse(file.text), all);
    } catch (const std::exception& error) {
      return fail(ErrorCode::kInvalidArgument,
                  fmt::format("no model can be made of {}: {}", file.name, error.what()));
    }
  }
  std::string text;
  for (const auto& [key, series] : all) text += series_text(key.first, key.second, series);
  return text;
}

}  // namespace ddl::bench
