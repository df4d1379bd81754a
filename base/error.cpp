#include "base/error.h"

#include <cstdio>
#include <cstdlib>
#include <system_error>

namespace ddl {

std::string Error::message() const {
  std::string text;
  for (auto it = chain_.rbegin(); it != chain_.rend(); ++it) text += *it + ": ";
  return text + cause_;
}

Error& Error::during(std::string what) & {
  if (!what.empty()) chain_.push_back(std::move(what));
  return *this;
}

Error&& Error::during(std::string what) && { return std::move(during(std::move(what))); }

Error Error::with_hint(std::string hint) const {
  Error hinted = *this;
  hinted.hint_ = std::move(hint);
  return hinted;
}

namespace {

ErrorCode code_of_errno(int saved_errno) {
  switch (saved_errno) {
    case ENOENT:
    case ESRCH:
    case ENOTDIR: return ErrorCode::kNotFound;
    case EACCES:
    case EPERM:
    case ENOEXEC: return ErrorCode::kPermissionDenied;
    case ETIMEDOUT: return ErrorCode::kTimeout;
    case EPIPE:
    case ECONNRESET: return ErrorCode::kClosed;
    case ENOSYS:
    case EOPNOTSUPP: return ErrorCode::kUnavailable;
    default: return ErrorCode::kSystem;
  }
}

}  // namespace

Error errno_error(std::string_view call, int saved_errno) {
  Error error(code_of_errno(saved_errno),
              std::string(call) + ": " + std::generic_category().message(saved_errno));
  error.errno_ = saved_errno;
  return error;
}

tl::unexpected<Error> fail_errno(std::string_view call) { return fail(errno_error(call, errno)); }

void invariant_failed(const char* file, int line, const char* condition, const std::string& values) {
  std::fprintf(stderr, "ddl: internal error at %s:%d: %s does not hold (%s); please report this\n", file,
               line, condition, values.c_str());
  std::abort();
}

}  // namespace ddl
