// --lint: checks a job script, and prints the findings as text or as one line of JSON.
#include <algorithm>
#include <cerrno>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "cli/commands/commands.h"
#include "cli/options/this_process.h"
#include "contract/ddlrun.h"
#include "contract/version.h"

namespace ddl::cli {

namespace {

using templates::LintFinding;
using templates::LintSeverity;

/// "job.sh:7: warning: [signal-usr1] ... (sbatch(1), --signal)"; without a line: "job.sh: warning: ...".
std::string finding_line(const LintFinding& finding, const std::string& file) {
  const std::string position = finding.line > 0 ? ":" + std::to_string(finding.line) : "";
  const std::string reference = finding.reference.empty() ? "" : " (" + finding.reference + ")";
  return file + position + ": " + std::string(templates::name_of(finding.severity)) + ": [" + finding.rule +
         "] " + finding.sentence + reference;
}

/// One line of JSON: {"file", "findings": [{"rule", "severity", "line", "sentence", "reference"}]}.
std::string findings_json(const std::vector<LintFinding>& findings, const std::string& file) {
  nlohmann::json rows = nlohmann::json::array();
  for (const LintFinding& finding : findings) {
    rows.push_back({{"rule", finding.rule},
                    {"severity", templates::name_of(finding.severity)},
                    {"line", finding.line},
                    {"sentence", finding.sentence},
                    {"reference", finding.reference}});
  }
  const nlohmann::ordered_json report = {
      {"ddlrun", contract::kVersion}, {"kind", "lint"}, {"file", file}, {"findings", std::move(rows)}};
  // The user's script need not be UTF-8.
  return report.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

/// The script cannot be read. Only one that does not exist has the exit code of a missing command.
int refuse_unreadable(const std::string& file, const Error& error, const Console& console) {
  if (error.code() == ErrorCode::kNotFound)
    return console.refuse(error.with_hint("name a script that exists"), contract::kNotFound);
  if (error.system_errno() == EISDIR)
    return console.refuse({error.code(), file + " is a directory", "name a job script in it"});
  if (error.code() == ErrorCode::kPermissionDenied)
    return console.refuse(error.with_hint("a script must be readable for this user to be checked"));
  if (error.code() == ErrorCode::kInvalidArgument)
    return console.refuse(error.with_hint("name a job script: those are shorter"));
  return console.refuse(error.with_hint("name a script that can be read"));
}

}  // namespace

bool has_error(const std::vector<LintFinding>& findings) {
  return std::any_of(findings.begin(), findings.end(),
                     [](const LintFinding& finding) { return finding.severity == LintSeverity::kError; });
}

int lint_script_file(const Request& request, const Environment& environment, const Console& console) {
  const auto text = read_user_file(request.script.lint_file);
  if (!text) return refuse_unreadable(request.script.lint_file, text.error(), console);
  // What the site requires depends on the nodes that the script requests.
  Request of_script = request;
  if (const Status found = find_site(of_script, site_catalog(environment), templates::nodes_of_script(*text));
      !found)
    return console.refuse(Error(found.error()).with_hint(kSitesHint));
  const auto findings = templates::lint_script(*text, of_script.profile ? &*of_script.profile : nullptr);
  const std::string file = request.script.lint_file == "-" ? "standard input" : request.script.lint_file;
  std::string report = request.json ? findings_json(findings, file) : "";
  for (const LintFinding& finding : findings) {
    if (!request.json) report += finding_line(finding, file) + "\n";
  }
  const int printed = console.print(report);
  return printed != contract::kSuccess ? printed : has_error(findings) ? 1 : 0;
}

}  // namespace ddl::cli
