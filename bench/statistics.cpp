#include "bench/statistics.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/error.h"

namespace ddl::bench {
namespace {

// Ratios are averaged as logarithms, else (a, b) and (b, a) would disagree about the factor between them.
std::vector<double> log_ratios(std::span<const double> subject, std::span<const double> peer) {
  DDL_CHECK(subject.size() == peer.size() && !subject.empty(),
            fmt::format("{} and {}", subject.size(), peer.size()));
  std::vector<double> logs(subject.size());
  for (std::size_t i = 0; i < logs.size(); ++i) {
    DDL_CHECK(subject[i] > 0 && peer[i] > 0, fmt::format("block {}: {} and {}", i, subject[i], peer[i]));
    logs[i] = std::log(subject[i] / peer[i]);
  }
  return logs;
}

}  // namespace

double median(std::vector<double> values) {
  DDL_CHECK(!values.empty(), "no values");
  const auto middle = values.begin() + std::ssize(values) / 2;
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

double percentile(std::vector<double> values, double fraction) {
  DDL_CHECK(!values.empty() && fraction > 0 && fraction <= 1,
            fmt::format("{} values, {}", values.size(), fraction));
  // The tiny subtraction prevents that 0.07 * 100 = 7.000000000000001 selects the eighth value.
  const std::ptrdiff_t rank = std::ceil(fraction * static_cast<double>(values.size()) - 1e-9);
  const auto wanted = values.begin() + std::max<std::ptrdiff_t>(rank, 1) - 1;
  std::nth_element(values.begin(), wanted, values.end());
  return *wanted;
}

std::vector<std::size_t> abba_order(std::size_t count, std::size_t block) {
  std::vector<std::size_t> order(2 * count);
  for (std::size_t i = 0; i < count; ++i) order[i] = order[2 * count - 1 - i] = (block + i) % count;
  return order;
}

PairedRatio paired_ratio(std::span<const double> subject, std::span<const double> peer) {
  const std::vector<double> logs = log_ratios(subject, peer);
  // The upper quartile is the lower one of the inverse ratios, so that swapping the contenders swaps the quartiles.
  std::vector<double> negated(logs.size());
  std::transform(logs.begin(), logs.end(), negated.begin(), [](double value) { return -value; });
  return {std::exp(median(logs)), std::exp(percentile(logs, 0.25)), std::exp(-percentile(negated, 0.25))};
}

double aa_spread(std::span<const double> first, std::span<const double> second) {
  std::vector<double> logs = log_ratios(first, second);
  for (double& value : logs) value = std::abs(value);
  return std::exp(percentile(std::move(logs), 0.9));
}

Conclusion conclude(const PairedRatio& found, double spread) {
  if (found.ratio > spread && found.low > 1) return Conclusion::kSlower;
  if (found.ratio < 1 / spread && found.high < 1) return Conclusion::kFaster;
  return Conclusion::kEqual;
}

std::string conclusion_text(const PairedRatio& found, double spread) {
  const auto times = [](double factor) { return fmt::format("{:.{}f}x", factor, factor < 100 ? 2 : 0); };
  switch (conclude(found, spread)) {
    case Conclusion::kFaster: return times(1 / found.ratio) + " faster";
    case Conclusion::kSlower: return times(found.ratio) + " slower";
    case Conclusion::kEqual: break;
  }
  const double noise = std::max({spread, found.ratio, 1 / found.ratio});
  return fmt::format("equal (within {:.0f}%)", std::ceil((noise - 1) * 100 - 1e-9));
}

}  // namespace ddl::bench
