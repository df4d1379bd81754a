// The data for a site's monitoring names what there is.
#include <algorithm>
#include <regex>
#include <set>

#include <nlohmann/json.hpp>

#include "base/fd.h"
#include "base/text.h"
#include "report/metrics.h"
#include "support/catch.h"

namespace {

using ddl::report::MetricFamily;

std::string shipped(const std::string& name) {
  return *ddl::read_file(std::string(DDL_SOURCE_DIR) + "/templates/monitoring/" + name);
}

/// With its labels, as samples have it.
struct Metric {
  std::string name;
  std::set<std::string> labels{"jobid"};
};

std::vector<Metric> all_metrics() {
  std::vector<Metric> metrics;
  for (const MetricFamily& family : ddl::report::metric_families()) {
    Metric one{std::string(family.name)};
    if (family.kind == MetricFamily::Kind::kInfo) one.name += "_info";
    if (family.kind == MetricFamily::Kind::kCounter) one.name += "_total";
    for (const std::string_view label : ddl::split(family.labels, ' ')) one.labels.emplace(label);
    metrics.push_back(std::move(one));
  }
  return metrics;
}

const Metric* find_metric(const std::vector<Metric>& metrics, const std::string& name) {
  const auto found = std::ranges::find(metrics, name, &Metric::name);
  return found == metrics.end() ? nullptr : &*found;
}

std::vector<std::smatch> matches(const std::string& text, const std::regex& pattern) {
  return std::vector<std::smatch>(std::sregex_iterator(text.begin(), text.end(), pattern),
                                  std::sregex_iterator());
}

std::vector<std::string> expressions_of(const std::string& dashboard) {
  std::vector<std::string> all;
  const auto file = nlohmann::json::parse(dashboard);
  for (const nlohmann::json& panel : file["panels"])
    for (const nlohmann::json& target : panel.value("targets", nlohmann::json::array()))
      all.push_back(target["expr"]);
  return all;
}

}  // namespace

TEST_CASE(
    "dashboards and alerts name only metrics and labels that there are, and the dashboards all of them") {
  const auto metrics = all_metrics();
  const std::regex selector(R"((ddlrun_[a-z_]+)(\{([^}]*)\})?)"), label(R"(([a-z_]+) *[!=]=?~? *")");
  std::set<std::string> drawn;
  for (const char* const file : {"dashboard-job.json", "dashboard-jobs.json", "alerts.yml"}) {
    const std::string text = shipped(file);
    const bool is_dashboard = std::string_view(file).ends_with(".json");
    const auto expressions = is_dashboard ? expressions_of(text) : std::vector<std::string>{text};
    CHECK(!expressions.empty());
    for (const std::string& expression : expressions) {
      for (const std::smatch& found : matches(expression, selector)) {
        CAPTURE(file, found[0].str());
        const Metric* const metric = find_metric(metrics, found[1]);
        REQUIRE(metric != nullptr);
        if (is_dashboard) drawn.insert(metric->name);
        const std::string inside = found[3];
        for (const std::smatch& one : matches(inside, label)) CHECK(metric->labels.contains(one[1]));
      }
    }
  }
  for (const Metric& metric : metrics) {
    CAPTURE(metric.name);
    CHECK((metric.name == "ddlrun_generation" || drawn.contains(metric.name)));
  }
}
