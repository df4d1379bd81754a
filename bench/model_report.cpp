#include "bench/model_report.h"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "bench/cost_model.h"
#include "bench/report.h"
#include "bench/text_table.h"

namespace ddl::bench {
namespace {

constexpr const char* kOneHost = "on one host";
constexpr int kRanksToPredict[] = {16, 64, 256, 1024};
constexpr std::uint64_t kSizesToPredict[] = {4, 64 << 10, 1 << 20, 16 << 20, 256 << 20};

// The points of one entrant on one network.
struct ModelSeries {
  std::vector<CostPoint> points;
  std::set<int> ranks;
  bool shared_cpus = false;  // some points are of more ranks than CPUs
};
// By the network and the entrant's label.
using AllSeries = std::map<std::pair<std::string, std::string>, ModelSeries>;

std::string network_of(const nlohmann::json& settings) {
  if (settings.at("hosts").get<int>() == 1) return kOneHost;
  return settings.at("rate").is_null() ? "between hosts"
                                       : "between hosts at " + settings.at("rate").get<std::string>();
}

bool counts(const nlohmann::json& entrant) {
  const std::string name = entrant.at("name");
  return entrant.at("again_of").is_null() && !name.ends_with("floor") && !name.ends_with("limit");
}

void add_file(const nlohmann::json& report, AllSeries& all) {
  const nlohmann::json& settings = report.at("settings");
  const auto what = parse_collective(report.at("benchmark").get<std::string>());
  const int ranks = settings.at("ranks");
  const int hosts = settings.at("hosts");
  if (!what) throw std::invalid_argument("it is not of a collective");
  if (hosts > 1 && hosts != ranks)
    throw std::invalid_argument("it has several ranks on each of several hosts");
  std::map<std::string, std::string> labels;
  for (const auto& entrant : report.at("entrants")) {
    if (counts(entrant)) labels[entrant.at("name")] = entrant.at("label");
  }
  for (const auto& one : report.at("cases")) {
    for (const auto& figures : one.at("figures")) {
      const auto label = labels.find(figures.at("entrant"));
      if (label == labels.end()) continue;
      ModelSeries& series = all[{network_of(settings), label->second}];
      series.points.push_back({*what, ranks, one.at("bytes"), figures.at("p50_seconds")});
      series.ranks.insert(ranks);
      series.shared_cpus = series.shared_cpus || ranks > static_cast<int>(settings.at("cpus").size());
    }
  }
}

std::string series_text(const std::string& network, const std::string& label, const ModelSeries& series) {
  const CostModel model = fit(series.points);
  std::string text = fmt::format(
      "{}, {}: a model, not a measurement\n"
      "  alpha {} a step, beta {:.3g} ns a byte sent, gamma {}; made of {} points of {} to {} ranks{}, from "
      "which it is "
      "off by {:.0f}% (median) to {:.0f}%\n",
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
  const bool is_one_host = network == kOneHost;
  return text + table.text() +
         (is_one_host ? "  Ranks of one host share its memory, too, of which the model knows nothing.\n\n"
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
                  fmt::format("{} is no result of a collective's benchmark that a model can be made of: {}",
                              file.name, error.what()));
    }
  }
  std::string text;
  for (const auto& [key, series] : all) text += series_text(key.first, key.second, series);
  return text;
}

}  // namespace ddl::bench
