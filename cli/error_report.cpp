#include "cli/error_report.h"

#include "contract/ddlrun.h"

namespace ddl::cli {

namespace {

int exit_code_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument: return contract::kUsageError;
    case ErrorCode::kNotFound: return contract::kNotFound;
    case ErrorCode::kInternal: return contract::kInternalError;
    default: return contract::kStartFailure;
  }
}

}  // namespace

launcher::JobReport error_report(const Error& error) {
  launcher::JobReport report;
  report.reason = launcher::EndReason::kStartFailed;
  report.exit_code = exit_code_of(error.code());
  report.message = error.message();
  return report;
}

}  // namespace ddl::cli
