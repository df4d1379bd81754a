// Errors as values: what went wrong, the chain of what was being done when it did, and what to do next.
#pragma once

#include <cerrno>
#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

namespace ddl {

enum class ErrorCode {
  kInvalidArgument,   ///< what the user gave is not valid
  kNotFound,          ///< a file, command or host that does not exist
  kPermissionDenied,  ///< it exists and may not be used
  kTimeout,           ///< a deadline passed
  kClosed,            ///< the other side went away
  kProtocol,          ///< bytes that violate a protocol or a format
  kUnavailable,       ///< valid, but not here or not in this build
  kBusy,              ///< valid, but not now: the next attempt may succeed
  kSystem,            ///< any other error of the operating system
  kInternal,          ///< a defect of our own
};

/// A failure. message() is one sentence for a person: outermost context first, the cause last.
class Error {
 public:
  Error(ErrorCode code, std::string message, std::string hint = {})
      : code_(code), cause_(std::move(message)), hint_(std::move(hint)) {}

  ErrorCode code() const { return code_; }
  bool is_worth_a_retry() const { return code_ == ErrorCode::kBusy; }
  /// errno of the failed system call, 0 when none was involved.
  int system_errno() const { return errno_; }
  /// "starting the agent on node3: fork: Cannot allocate memory"
  std::string message() const;
  const std::string& cause() const { return cause_; }
  /// What a person can do next; "" if nothing is known.
  const std::string& hint() const { return hint_; }

  /// Adds what was being done, from the inside out: error.during("reading hosts.txt:7"). "" adds nothing.
  Error& during(std::string what) &;
  Error&& during(std::string what) &&;
  /// The same error with this hint.
  Error with_hint(std::string hint) const;

 private:
  friend Error errno_error(std::string_view call, int saved_errno);
  ErrorCode code_;
  int errno_ = 0;
  std::string cause_;
  std::string hint_;
  std::vector<std::string> chain_;  // innermost first
};

template <class T>
using Result = tl::expected<T, Error>;
using Status = Result<void>;

inline tl::unexpected<Error> fail(Error error) { return tl::unexpected<Error>(std::move(error)); }
inline tl::unexpected<Error> fail(ErrorCode code, std::string message, std::string hint = {}) {
  return fail(Error(code, std::move(message), std::move(hint)));
}
/// An error in what a person has given: an argument, a file, a variable.
inline tl::unexpected<Error> refuse(std::string message, std::string hint = {}) {
  return fail(ErrorCode::kInvalidArgument, std::move(message), std::move(hint));
}

/// The one place where errno becomes an Error: "open /x: No such file or directory".
Error errno_error(std::string_view call, int saved_errno);
/// The same, for the current errno, ready to be returned.
tl::unexpected<Error> fail_errno(std::string_view call);

/// Repeats a system call while it is interrupted: retry_eintr([&] { return ::read(fd, p, n); }).
template <class Call>
auto retry_eintr(Call call) -> decltype(call()) {
  for (;;) {
    auto result = call();
    if (result != -1 || errno != EINTR) return result;
  }
}

/// A broken invariant of our own: prints the sentence with file and line, and aborts. Never for user input.
[[noreturn]] void invariant_failed(const char* file, int line, const char* condition,
                                   const std::string& values);

}  // namespace ddl

#define DDL_CHECK(condition, values)                                                     \
  do {                                                                                   \
    if (!(condition)) ::ddl::invariant_failed(__FILE__, __LINE__, #condition, (values)); \
  } while (false)

/// Returns early with the error of a Status expression.
#define DDL_TRY(expression)                                  \
  do {                                                       \
    if (auto ddl_try_result = (expression); !ddl_try_result) \
      return ::ddl::fail(std::move(ddl_try_result.error())); \
  } while (false)

/// Declares a variable with the value of a Result expression, or returns early with its error: DDL_ASSIGN(x, f()).
#define DDL_ASSIGN(variable, ...) DDL_ASSIGN_BY(DDL_ASSIGN_NAME(__LINE__), variable, __VA_ARGS__)
#define DDL_ASSIGN_NAME(line) DDL_ASSIGN_JOINED(line)
#define DDL_ASSIGN_JOINED(line) ddl_assign_result_##line
#define DDL_ASSIGN_BY(result, variable, ...)                      \
  auto result = (__VA_ARGS__);                                    \
  if (!(result)) return ::ddl::fail(std::move((result).error())); \
  auto variable = *std::move(result)
