// The report of a job as text and as one line of JSON.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "base/error.h"
#include "cli/reports/console.h"
#include "launcher/job/job_report.h"
#include "launcher/job/job_spec.h"

namespace ddl::cli {

/// "0, 2-5, 7"; after the first dozen ranges "and 40 more". ranks are ascending.
std::string rank_ranges(const std::vector<int>& ranks);
/// "rank 3", "ranks 0, 2-5".
std::string ranks_text(const std::vector<int>& ranks);

/// A start failure with the error's sentence. Its exit code is kUsageError for kInvalidArgument, kNotFound for
/// kNotFound, kInternalError for kInternal, else kStartFailure. Pure.
launcher::JobReport error_report(const Error& error);

/// The first failure (rank, host, pid, cause, time), its last lines on standard error, the outcome of the other
/// ranks, and what to do next. "" for a job that succeeded. Ends with a newline. Pure.
std::string failure_report(const launcher::JobReport& report, const launcher::JobSpec& job,
                           const TerminalStyle& style);

/// "4 ranks exited with 0 after 1.20 s": for --verbose.
std::string success_sentence(const launcher::JobReport& report);

/// "0.034 s", "12.3 s", "2 min 5 s", "3 h 20 min".
std::string duration_text(double seconds);

/// null for "".
nlohmann::ordered_json text_or_null(const std::string& text);

/// The report as one line of JSON, with its newline; docs/reference/ddlrun.md has the schema. Bytes that are not
/// UTF-8 become U+FFFD. Pure.
std::string report_json(const launcher::JobReport& report);

}  // namespace ddl::cli
