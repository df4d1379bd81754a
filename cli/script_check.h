// What speaks against a job script, for a person or a script to read.
#pragma once

#include <string>
#include <vector>

#include "templates/lint/lint.h"

namespace ddl::cli {

/// "job.sh:7: warning: [signal-usr1] ... (sbatch(1), --signal)"; without a line: "job.sh: warning: ...".
std::string finding_line(const templates::LintFinding& finding, const std::string& file);
/// One line of JSON: {"file", "findings": [{"rule", "severity", "line", "sentence", "reference"}]}.
std::string findings_json(const std::vector<templates::LintFinding>& findings, const std::string& file);

bool has_error(const std::vector<templates::LintFinding>& findings);

}  // namespace ddl::cli
