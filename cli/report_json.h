// The report of a job for programs: one line of JSON. docs/reference/ddlrun.md has the schema.
#pragma once

#include <string>

#include "launcher/supervise/job_report.h"

namespace ddl::cli {

/// One object in one line, with its newline. Bytes that are no UTF-8 become U+FFFD. Pure.
std::string report_json(const launcher::JobReport& report);

}  // namespace ddl::cli
