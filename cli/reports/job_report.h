// The report of a job as text.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "base/error.h"
#include "cli/reports/console.h"
#include "launcher/job/job_report.h"
#include "launcher/job/job_spec.h"

namespace ddl::cli {

/// A start failure with the error's sentence. Its exit code is kUsageError for kInvalidArgument, kNotFound for
/// kNotFound, kInternalError for kInternal, else kStartFailure. Pure.
launcher::JobReport error_report(const Error& error);

/// The first failure (rank, host, pid, cause, time), its last lines on standard error, the outcome of the other
/// ranks, and what to do next. "" for a job that succeeded. Ends with a newline. Pure.
std::string failure_report(const launcher::JobReport& report, const launcher::JobSpec& job,
                           const TerminalStyle& style);

/// "4 ranks exited with 0 after 1.20 s": for --verbose.
std::string success_sentence(const launcher::JobReport& report);

/// null for "".
nlohmann::ordered_json text_or_null(const std::string& text);

}  // namespace ddl::cli
