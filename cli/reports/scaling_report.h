// What --scaling prints at the end.
#pragma once

#include <string>

#include "cli/reports/console.h"
#include "report/job_record.h"

namespace ddl::cli {

/// A table with a row for each number of ranks, and the verdict. Pure, as the other one.
std::string scaling_text(const report::ScalingStudy& study, const TerminalStyle& style);

/// The same as a line of JSON.
std::string scaling_json(const report::ScalingStudy& study, int exit_code);

}  // namespace ddl::cli
