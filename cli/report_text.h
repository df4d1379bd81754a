// The last thing that ddlrun prints: why the job did not succeed, for a person.
#pragma once

#include <string>

#include "cli/terminal_style.h"
#include "launcher/job/job_spec.h"
#include "launcher/supervise/job_report.h"

namespace ddl::cli {

/// The first failure (rank, host, pid, how, when), its last lines on standard error, what happened to the other
/// ranks, and what to do next. "" for a job that succeeded. Ends with a newline. Pure.
std::string failure_report(const launcher::JobReport& report, const launcher::JobSpec& job,
                           const TerminalStyle& style);

/// "4 ranks exited with 0 after 1.20 s": for --verbose.
std::string success_sentence(const launcher::JobReport& report);

/// "0.034 s", "12.3 s", "2 min 5 s", "3 h 20 min".
std::string duration_text(double seconds);

}  // namespace ddl::cli
