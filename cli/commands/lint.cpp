// What --lint prints of a job script, for a person and as one line of JSON.
#include <algorithm>

#include <nlohmann/json.hpp>

#include "cli/commands/commands.h"
#include "contract/version.h"

namespace ddl::cli {

namespace {

using templates::LintFinding;
using templates::LintSeverity;

const char* name_of(LintSeverity severity) { return severity == LintSeverity::kError ? "error" : "warning"; }

}  // namespace

std::string finding_line(const LintFinding& finding, const std::string& file) {
  const std::string place = finding.line > 0 ? ":" + std::to_string(finding.line) : "";
  const std::string reference = finding.reference.empty() ? "" : " (" + finding.reference + ")";
  return file + place + ": " + name_of(finding.severity) + ": [" + finding.rule + "] " + finding.sentence +
         reference;
}

std::string findings_json(const std::vector<LintFinding>& findings, const std::string& file) {
  nlohmann::json rows = nlohmann::json::array();
  for (const LintFinding& finding : findings) {
    rows.push_back({{"rule", finding.rule},
                    {"severity", name_of(finding.severity)},
                    {"line", finding.line},
                    {"sentence", finding.sentence},
                    {"reference", finding.reference}});
  }
  const nlohmann::ordered_json report = {
      {"ddlrun", contract::kVersion}, {"kind", "lint"}, {"file", file}, {"findings", std::move(rows)}};
  // What a person wrote need not be UTF-8.
  return report.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

bool has_error(const std::vector<LintFinding>& findings) {
  return std::any_of(findings.begin(), findings.end(),
                     [](const LintFinding& finding) { return finding.severity == LintSeverity::kError; });
}

}  // namespace ddl::cli
