#include "bench/report.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"

namespace ddl::bench {

double Figures::p50() const {
  std::vector<double> all;
  for (const auto& block : blocks) all.insert(all.end(), block.begin(), block.end());
  return median(std::move(all));
}

double Figures::p99() const {
  std::vector<double> all;
  for (const auto& block : blocks) all.insert(all.end(), block.begin(), block.end());
  return percentile(std::move(all), 0.99);
}

std::vector<double> Figures::block_medians() const {
  std::vector<double> medians;
  for (const auto& block : blocks) {
    if (!block.empty()) medians.push_back(median(block));
  }
  return medians;
}

std::size_t Figures::count() const {
  std::size_t count = 0;
  for (const auto& block : blocks) count += block.size();
  return count;
}

const Figures* Case::figures_of(const std::string& contender) const {
  const auto found = std::find_if(figures.begin(), figures.end(),
                                  [&](const Figures& one) { return one.contender == contender; });
  return found == figures.end() ? nullptr : &*found;
}

const Comparison* Case::comparison(const std::string& subject, const std::string& peer) const {
  const auto found = std::find_if(comparisons.begin(), comparisons.end(), [&](const Comparison& one) {
    return one.subject == subject && one.peer == peer;
  });
  return found == comparisons.end() ? nullptr : &*found;
}

const Contender& Report::contender(const std::string& name) const {
  const auto found = std::find_if(contenders.begin(), contenders.end(),
                                  [&](const Contender& one) { return one.name == name; });
  DDL_CHECK(found != contenders.end(), name);
  return *found;
}

std::vector<Report> by_distance(const Report& report) {
  std::vector<Report> parts;
  for (const Case& one : report.cases) {
    const auto has_distance = [&](const Report& part) { return part.cases.front().distance == one.distance; };
    auto part = std::find_if(parts.begin(), parts.end(), has_distance);
    if (part == parts.end()) {
      part = parts.insert(parts.end(), report);
      part->cases.clear();
      if (one.distance) part->title += fmt::format(", {}", name_of(*one.distance));
    }
    part->cases.push_back(one);
  }
  return parts.empty() ? std::vector{report} : parts;
}

const Comparison* best_peer(const Case& of, const std::vector<Contender>& contenders) {
  const Comparison* best = nullptr;
  for (const Comparison& one : of.comparisons) {
    const auto peer = std::find_if(contenders.begin(), contenders.end(),
                                   [&](const Contender& contender) { return contender.name == one.peer; });
    if (peer == contenders.end() || peer->is_ours || peer->is_limit()) continue;
    if (best == nullptr || one.ratio.ratio > best->ratio.ratio) best = &one;
  }
  return best;
}

namespace {

struct PairedMedians {
  std::vector<double> first;
  std::vector<double> second;
};

// Of the blocks in which both have times.
PairedMedians paired_medians(const Figures& first, const Figures& second) {
  PairedMedians medians;
  for (std::size_t block = 0; block < first.blocks.size() && block < second.blocks.size(); ++block) {
    if (first.blocks[block].empty() || second.blocks[block].empty()) continue;
    medians.first.push_back(median(first.blocks[block]));
    medians.second.push_back(median(second.blocks[block]));
  }
  return medians;
}

}  // namespace

void compare(Case& of, const std::vector<Contender>& contenders, const std::vector<Pairing>& pairings) {
  for (const Contender& again : contenders) {
    if (again.again_of.empty()) continue;
    const Figures* first = of.figures_of(again.again_of);
    const Figures* second = of.figures_of(again.name);
    if (first == nullptr || second == nullptr) continue;
    const PairedMedians medians = paired_medians(*first, *second);
    if (!medians.first.empty()) of.spread = aa_spread(medians.first, medians.second);
  }
  if (!of.spread) return;  // without it there is no measure for a difference
  for (const Pairing& pairing : pairings) {
    const Figures* subject = of.figures_of(pairing.subject);
    const Figures* peer = of.figures_of(pairing.peer);
    if (subject == nullptr || peer == nullptr) continue;
    if (const auto ratio = ratio_of(*subject, *peer))
      of.comparisons.push_back({pairing.subject, pairing.peer, *ratio, *of.spread});
  }
}

std::optional<PairedRatio> ratio_of(const Figures& subject, const Figures& peer) {
  const PairedMedians medians = paired_medians(subject, peer);
  if (medians.first.empty()) return std::nullopt;
  return paired_ratio(medians.first, medians.second);
}

std::string time_text(double seconds) {
  struct Unit {
    double seconds;
    const char* name;
  };
  constexpr Unit kUnits[] = {{1, "s"}, {1e-3, "ms"}, {1e-6, "µs"}};
  const Unit* unit = std::find_if(std::begin(kUnits), std::end(kUnits),
                                  [seconds](const Unit& one) { return seconds >= one.seconds * 0.9995; });
  if (unit == std::end(kUnits)) --unit;
  const double value = seconds / unit->seconds;
  const int decimals = value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
  return fmt::format("{:.{}f} {}", value, decimals, unit->name);
}

std::string size_text(std::uint64_t bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB"};
  std::size_t unit = 0;
  while (unit < 3 && bytes >= 1024 && bytes % 1024 == 0) {
    bytes /= 1024;
    ++unit;
  }
  return fmt::format("{} {}", bytes, kUnits[unit]);
}

Aim ratio_aim(const Report& report, const std::string& text, const Pairing& pairing, double limit) {
  for (const Case& one : report.cases) {
    const Comparison* found = one.comparison(pairing.subject, pairing.peer);
    if (found == nullptr) continue;
    const bool met = limit == 1 ? conclude(found->ratio, found->spread) != Conclusion::kSlower
                                : found->ratio.ratio <= limit;
    return {text,
            fmt::format("{:.2f}x, {}", found->ratio.ratio, conclusion_text(found->ratio, found->spread)),
            met};
  }
  return {text, "one of the two is absent", std::nullopt};
}

Aim gauge_aim(const Report& report, const std::string& text, const std::string& gauge_name, double limit,
              const char* unit, double scale) {
  for (const Gauge& gauge : report.gauges) {
    if (gauge.name != gauge_name) continue;
    if (!gauge.value) return {text, gauge.note, std::nullopt};
    return {text, fmt::format("{:.3g} {}", *gauge.value * scale, unit), *gauge.value < limit};
  }
  return {text, "not measured", std::nullopt};
}

}  // namespace ddl::bench
