// What a call of libddl reports when it fails: a status of ddl.h and one sentence.
#pragma once

#include <string>
#include <utility>

#include <tl/expected.hpp>

#include "base/error.h"
#include "ddl/ddl.h"

namespace ddl::runtime {

struct Failure {
  ddl_status status = DDL_ERROR_INTERNAL;
  std::string message;
};

/// The outcome of a collective. Unlike Result, it can say what only collectives know: mismatch, busy, aborted.
using Outcome = tl::expected<void, Failure>;

inline tl::unexpected<Failure> failed(ddl_status status, std::string message) {
  return tl::unexpected<Failure>(Failure{status, std::move(message)});
}

/// An error from joining the job, as a status of ddl.h. What has no better name is DDL_ERROR_BOOTSTRAP.
inline Failure to_failure(const Error& error) {
  ddl_status status = DDL_ERROR_BOOTSTRAP;
  switch (error.code()) {
    case ErrorCode::kInvalidArgument: status = DDL_ERROR_INVALID_ARGUMENT; break;
    case ErrorCode::kUnavailable: status = DDL_ERROR_UNSUPPORTED; break;
    case ErrorCode::kSystem: status = DDL_ERROR_SYSTEM; break;
    case ErrorCode::kInternal: status = DDL_ERROR_INTERNAL; break;
    case ErrorCode::kNotFound:
    case ErrorCode::kPermissionDenied:
    case ErrorCode::kTimeout:
    case ErrorCode::kClosed:
    case ErrorCode::kProtocol: break;
  }
  return Failure{status, error.message()};
}

}  // namespace ddl::runtime
