// Errors as values: what went wrong, and the chain of what was being done when it did.
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
  kSystem,            ///< any other error of the operating system
  kInternal,          ///< a defect of our own
};

/// A failure. message() is one sentence for a person: outermost context first, the cause last.
class Error {
 public:
  Error(ErrorCode code, std::string message) : code_(code), cause_(std::move(message)) {}

  ErrorCode code() const { return code_; }
  /// errno of the failed system call, 0 when none was involved.
  int system_errno() const { return errno_; }
  /// "starting the agent on node3: fork: Cannot allocate memory"
  std::string message() const;
  const std::string& cause() const { return cause_; }

  /// Adds what was being done, from the inside out: error.during("reading hosts.txt:7").
  Error& during(std::string what) &;
  Error&& during(std::string what) &&;

 private:
  friend Error errno_error(std::string_view call, int saved_errno);
  ErrorCode code_;
  int errno_ = 0;
  std::string cause_;
  std::vector<std::string> chain_;  // innermost first
};

template <class T>
using Result = tl::expected<T, Error>;
using Status = Result<void>;

inline tl::unexpected<Error> fail(Error error) { return tl::unexpected<Error>(std::move(error)); }
inline tl::unexpected<Error> fail(ErrorCode code, std::string message) {
  return tl::unexpected<Error>(Error(code, std::move(message)));
}
/// An error in what a person has given: an argument, a file, a variable.
inline tl::unexpected<Error> refuse(std::string message) {
  return fail(ErrorCode::kInvalidArgument, std::move(message));
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

/// Returns early with the error of a Status expression, adding what was being done.
#define DDL_TRY(expression)                                  \
  do {                                                       \
    if (auto ddl_try_result = (expression); !ddl_try_result) \
      return ::ddl::fail(std::move(ddl_try_result.error())); \
  } while (false)
