#include "base/error.h"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <memory>

#include "base/fd.h"
#include "support/catch.h"

using ddl::Error;
using ddl::ErrorCode;
using ddl::Result;
using ddl::Status;

TEST_CASE("a message is the chain from the outside in, then the cause") {
  Error error(ErrorCode::kSystem, "no space left");
  CHECK(error.message() == "no space left");
  error.during("writing frame 7").during("sending the plan to node3");
  CHECK(error.message() == "sending the plan to node3: writing frame 7: no space left");
  CHECK(error.cause() == "no space left");
}

TEST_CASE("during works on temporaries too") {
  const Error error = Error(ErrorCode::kTimeout, "no answer").during("starting");
  CHECK(error.message() == "starting: no answer");
  CHECK(error.code() == ErrorCode::kTimeout);
  CHECK(error.system_errno() == 0);
}

TEST_CASE("errno becomes a code, a sentence and stays readable") {
  const auto [number, code] = GENERATE(table<int, ErrorCode>({{ENOENT, ErrorCode::kNotFound},
                                                              {ENOTDIR, ErrorCode::kNotFound},
                                                              {ESRCH, ErrorCode::kNotFound},
                                                              {EACCES, ErrorCode::kPermissionDenied},
                                                              {EPERM, ErrorCode::kPermissionDenied},
                                                              {ENOEXEC, ErrorCode::kPermissionDenied},
                                                              {ETIMEDOUT, ErrorCode::kTimeout},
                                                              {EPIPE, ErrorCode::kClosed},
                                                              {ECONNRESET, ErrorCode::kClosed},
                                                              {ENOSYS, ErrorCode::kUnavailable},
                                                              {EOPNOTSUPP, ErrorCode::kUnavailable},
                                                              {ENOSPC, ErrorCode::kSystem}}));
  CAPTURE(number);
  const Error error = ddl::errno_error("open x", number);
  CHECK(error.code() == code);
  CHECK(error.system_errno() == number);
}

TEST_CASE("an errno message names the call and the reason") {
  CHECK(ddl::errno_error("open plan.txt", ENOENT).message() == "open plan.txt: No such file or directory");
  errno = EMFILE;
  const Status status = ddl::fail_errno("pipe2");
  REQUIRE_FALSE(status);
  CHECK(status.error().system_errno() == EMFILE);
}

TEST_CASE("the errno survives what is added later") {
  const Error error = ddl::errno_error("connect", ECONNREFUSED).during("joining");
  CHECK(error.system_errno() == ECONNREFUSED);
}

namespace {

Status half(int value) {
  if (value % 2 != 0) return ddl::fail(ErrorCode::kInvalidArgument, "odd");
  return {};
}

Result<int> halved(int value) {
  DDL_TRY(half(value));
  return value / 2;
}

Result<int> quartered(int value) {
  DDL_ASSIGN(first, halved(value));
  DDL_ASSIGN(second, halved(first));
  return second;
}

}  // namespace

TEST_CASE("DDL_TRY goes on after success and returns the error otherwise") {
  CHECK(halved(8) == 4);
  const Result<int> refused = halved(7);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message() == "odd");
}

TEST_CASE("DDL_ASSIGN declares the value of a result, or returns its error") {
  CHECK(quartered(8) == 2);
  REQUIRE_FALSE(quartered(6));
  CHECK(quartered(6).error().message() == "odd");
}

TEST_CASE("an error has a hint, and says whether a retry is worth it") {
  const Error error = Error(ErrorCode::kBusy, "it closed the connection").during("node3").during("");
  CHECK(error.hint().empty());
  CHECK(error.is_worth_a_retry());
  const Error hinted = error.with_hint("try another host");
  CHECK(hinted.message() == "node3: it closed the connection");
  CHECK(hinted.hint() == "try another host");
  const Status refused = ddl::refuse("too many", "give one");
  CHECK(refused.error().hint() == "give one");
  CHECK_FALSE(refused.error().is_worth_a_retry());
}

TEST_CASE("a result may hold what can only be moved") {
  Result<std::unique_ptr<int>> result = std::make_unique<int>(5);
  REQUIRE(result);
  const std::unique_ptr<int> taken = std::move(result).value();
  CHECK(*taken == 5);
}

TEST_CASE("an interrupted call is repeated, another failure is not") {
  int calls = 0;
  CHECK(ddl::retry_eintr([&] {
          errno = EINTR;
          return ++calls < 3 ? -1 : 42;
        }) == 42);
  CHECK(calls == 3);

  calls = 0;
  CHECK(ddl::retry_eintr([&] {
          ++calls;
          errno = EIO;
          return -1;
        }) == -1);
  CHECK(calls == 1);
}

TEST_CASE("a broken invariant says file, condition and values, and aborts") {
  auto pipe = ddl::make_pipe();
  REQUIRE(pipe);
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    ::dup2(pipe->second.get(), STDERR_FILENO);
    std::signal(SIGABRT,
                SIG_DFL);  // Catch2's handler would report the child's abort as a failure of this case.
    const int ranks = 0;
    DDL_CHECK(ranks > 0, std::to_string(ranks) + " ranks");
    ::_exit(0);
  }
  pipe->second.reset();
  std::string printed;
  char buffer[512];
  for (ssize_t got; (got = ::read(pipe->first.get(), buffer, sizeof buffer)) > 0;) {
    printed.append(buffer, static_cast<std::size_t>(got));
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK((WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT));
  CHECK_THAT(printed, Catch::Contains("error_test.cpp:") && Catch::Contains("ranks > 0 does not hold") &&
                          Catch::Contains("(0 ranks)"));
}
