#include "cli/reports/job_report.h"

#include <cerrno>

#include "support/catch.h"

using ddl::Error;
using ddl::ErrorCode;
using ddl::cli::error_report;

TEST_CASE("an error before the start gives the exit code of its kind") {
  const auto code = [](ErrorCode error) { return error_report(Error(error, "x")).exit_code; };
  CHECK(code(ErrorCode::kInvalidArgument) == 2);
  CHECK(code(ErrorCode::kNotFound) == 127);
  CHECK(code(ErrorCode::kInternal) == 120);
  for (const auto other : {ErrorCode::kPermissionDenied, ErrorCode::kTimeout, ErrorCode::kClosed,
                           ErrorCode::kProtocol, ErrorCode::kUnavailable, ErrorCode::kSystem}) {
    CHECK(code(other) == 122);
  }
}

TEST_CASE("the error's sentence is the report") {
  const auto report = error_report(ddl::errno_error("fork", EAGAIN).during("starting the agent"));
  CHECK(report.reason == ddl::launcher::EndReason::kStartFailed);
  CHECK(ddl::cli::failure_report(report, {}, ddl::cli::TerminalStyle(false)) ==
        "ddlrun: starting the agent: fork: Resource temporarily unavailable\n");
}

TEST_CASE("an error's hint is what to do next") {
  const auto report = error_report(Error(ErrorCode::kUnavailable, "node2: no ddlrun", "install it there"));
  CHECK(ddl::cli::failure_report(report, {}, ddl::cli::TerminalStyle(false)) ==
        "ddlrun: node2: no ddlrun\n  next: install it there\n");
}
