// A job that could not begin, as a report like any other.
#pragma once

#include "base/error.h"
#include "launcher/supervise/job_report.h"

namespace ddl::cli {

/// The error's sentence as a start failure. Its exit code is kUsageError for what the user gave wrongly, kNotFound for
/// what does not exist, kInternalError for a defect, else kStartFailure. Pure.
launcher::JobReport error_report(const Error& error);

}  // namespace ddl::cli
