// A report as data for other programs: JSON, and comma-separated values.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "bench/report.h"

namespace ddl::bench {

// A report as JSON.
namespace {

using nlohmann::ordered_json;

ordered_json optional_text(const std::string& text) {
  return text.empty() ? ordered_json() : ordered_json(text);
}

ordered_json of_contender(const Contender& contender) {
  return {{"name", contender.name},
          {"label", contender.label},
          {"why", contender.why},
          {"command", command_text(contender.command)},
          {"again_of", optional_text(contender.again_of)},
          {"absent", optional_text(contender.absent.value_or(""))},
          {"failed_runs", contender.failed_runs},
          {"last_failure", optional_text(contender.last_failure)},
          {"failed", optional_text(contender.failed.value_or(""))}};
}

ordered_json of_figures(const Figures& figures) {
  return {{"entrant", figures.contender},
          {"samples", figures.count()},
          {"p50_seconds", figures.p50()},
          {"p99_seconds", figures.p99()},
          {"cpu_seconds_per_run", figures.cpu_seconds_per_run},
          {"block_median_seconds", figures.block_medians()}};
}

ordered_json of_comparison(const Comparison& comparison) {
  return {{"subject", comparison.subject},
          {"peer", comparison.peer},
          {"ratio", comparison.ratio.ratio},
          {"ratio_lower_quartile", comparison.ratio.low},
          {"ratio_upper_quartile", comparison.ratio.high},
          {"verdict", conclusion_text(comparison.ratio, comparison.spread)}};
}

ordered_json of_case(const Case& one, const std::vector<Contender>& contenders) {
  const Comparison* best = best_peer(one, contenders);
  ordered_json json = {{"name", one.name},
                       {"label", one.label},
                       {"bytes", one.bytes ? ordered_json(*one.bytes) : ordered_json()},
                       {"distance", one.distance ? ordered_json(name_of(*one.distance)) : ordered_json()},
                       {"entrants", one.contenders},
                       {"aa_spread", one.spread ? ordered_json(*one.spread) : ordered_json()},
                       {"best_peer", best == nullptr ? ordered_json() : ordered_json(best->peer)},
                       {"figures", ordered_json::array()},
                       {"comparisons", ordered_json::array()}};
  for (const Figures& figures : one.figures) json["figures"].push_back(of_figures(figures));
  for (const Comparison& comparison : one.comparisons)
    json["comparisons"].push_back(of_comparison(comparison));
  return json;
}

ordered_json of_machine(const Machine& machine) {
  return {{"cpu_model", machine.cpu_model}, {"cpus", machine.cpus},
          {"system", machine.system},       {"kernel", machine.kernel},
          {"date", machine.date},           {"build_type", machine.build_type},
          {"version", machine.version},     {"open_mpi", optional_text(machine.open_mpi)}};
}

}  // namespace

std::string as_json(const Report& report) {
  ordered_json json = {{"benchmark", report.benchmark},
                       {"title", report.title},
                       {"method", report.method},
                       {"settings",
                        {{"quick", report.settings.quick},
                         {"blocks", report.settings.blocks},
                         {"ranks", report.settings.job.ranks},
                         {"hosts", report.settings.job.hosts},
                         {"rate", optional_text(report.settings.job.rate)},
                         {"cpus", report.settings.cpus},
                         {"cpus_per_rank", report.settings.job.cpus_per_rank}}},
                       {"machine", of_machine(report.machine)},
                       {"other_load", report.other_load},
                       {"entrants", ordered_json::array()},
                       {"cases", ordered_json::array()},
                       {"gauges", ordered_json::array()},
                       {"aims", ordered_json::array()},
                       {"remarks", report.remarks}};
  for (const Contender& contender : report.contenders) json["entrants"].push_back(of_contender(contender));
  for (const Case& one : report.cases) json["cases"].push_back(of_case(one, report.contenders));
  for (const Gauge& gauge : report.gauges) {
    json["gauges"].push_back({{"name", gauge.name},
                              {"label", gauge.label},
                              {"unit", gauge.unit},
                              {"value", gauge.value ? ordered_json(*gauge.value) : ordered_json()},
                              {"note", gauge.note}});
  }
  for (const Aim& aim : report.aims) {
    json["aims"].push_back({{"text", aim.text},
                            {"found", aim.found},
                            {"met", aim.met ? ordered_json(*aim.met) : ordered_json()}});
  }
  // The output of a failed program may hold invalid UTF-8.
  return json.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

// A report as comma-separated values: a row for each case and contender.
namespace {

// A field in quotes where it needs them (RFC 4180).
std::string quoted(const std::string& text) {
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string field = "\"";
  for (const char c : text) field += c == '"' ? std::string("\"\"") : std::string(1, c);
  return field + "\"";
}

// The contender's time divided by the subject's; empty if the contender is not a peer in any comparison.
std::string time_over_ours(const Case& one, const std::string& contender) {
  for (const Comparison& comparison : one.comparisons) {
    if (comparison.peer == contender) return fmt::format("{:.4f}", 1 / comparison.ratio.ratio);
  }
  return {};
}

}  // namespace

std::string as_csv(const Report& report) {
  const JobShape& job = report.settings.job;
  std::string text =
      "benchmark,ranks,hosts,rate,case,bytes,entrant,p50_seconds,p99_seconds,samples,cpu_seconds_per_run,"
      "time_over_ours,aa_spread,distance\n";
  for (const Case& one : report.cases) {
    for (const Figures& figures : one.figures) {
      text += fmt::format(
          "{},{},{},{},{},{},{},{:.9g},{:.9g},{},{:.6g},{},{},{}\n", quoted(report.benchmark), job.ranks,
          job.hosts, job.rate, quoted(one.name), one.bytes ? std::to_string(*one.bytes) : "",
          quoted(figures.contender), figures.p50(), figures.p99(), figures.count(),
          figures.cpu_seconds_per_run, time_over_ours(one, figures.contender),
          one.spread ? fmt::format("{:.4f}", *one.spread) : "", one.distance ? name_of(*one.distance) : "");
    }
  }
  return text;
}

}  // namespace ddl::bench
