// A report as comma-separated values: a row for each case and entrant.
#include <fmt/format.h>

#include "bench/report.h"

namespace ddl::bench {
namespace {

// A field in quotes where it needs them (RFC 4180).
std::string quoted(const std::string& text) {
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string field = "\"";
  for (const char c : text) field += c == '"' ? std::string("\"\"") : std::string(1, c);
  return field + "\"";
}

// How many times as long as the subject this entrant took; nothing for those that are no subject's peer.
std::string time_over_ours(const Case& one, const std::string& entrant) {
  for (const Comparison& comparison : one.comparisons) {
    if (comparison.peer == entrant) return fmt::format("{:.4f}", 1 / comparison.ratio.ratio);
  }
  return {};
}

}  // namespace

std::string as_csv(const Report& report) {
  const JobShape& job = report.settings.job;
  std::string text =
      "benchmark,ranks,hosts,rate,case,bytes,entrant,p50_seconds,p99_seconds,samples,cpu_seconds_per_run,"
      "time_over_ours,aa_spread\n";
  for (const Case& one : report.cases) {
    for (const Figures& figures : one.figures) {
      text += fmt::format(
          "{},{},{},{},{},{},{},{:.9g},{:.9g},{},{:.6g},{},{}\n", quoted(report.benchmark), job.ranks,
          job.hosts, job.rate, quoted(one.name), one.bytes ? std::to_string(*one.bytes) : "",
          quoted(figures.entrant), figures.p50(), figures.p99(), figures.count(), figures.cpu_seconds_per_run,
          time_over_ours(one, figures.entrant), one.spread ? fmt::format("{:.4f}", *one.spread) : "");
    }
  }
  return text;
}

}  // namespace ddl::bench
