// What a call of libddl reports when it fails, the notice by which the ranks of all hosts learn why a job cannot go
// on, and the record by which the launcher learns which rank was lost.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include <tl/expected.hpp>

#include "base/error.h"
#include "ddl/ddl.h"
#include "runtime/src/common/call.h"
#include "runtime/src/common/interruption.h"
#include "runtime/src/common/member.h"

namespace ddl::runtime {

/// A status of ddl.h and one sentence.
struct Failure {
  ddl_status status = DDL_ERROR_INTERNAL;
  std::string message;
};

/// The outcome of a collective. Unlike Result, it can express states that only collectives have: mismatch, busy,
/// aborted.
using Outcome = tl::expected<void, Failure>;

}  // namespace ddl::runtime

namespace ddl {

// DDL_TRY and DDL_ASSIGN pass on a Failure too.
inline tl::unexpected<runtime::Failure> fail(runtime::Failure failure) {
  return tl::unexpected<runtime::Failure>(std::move(failure));
}
inline tl::unexpected<runtime::Failure> fail(ddl_status status, std::string message) {
  return fail(runtime::Failure{status, std::move(message)});
}

}  // namespace ddl

namespace ddl::runtime {

using ddl::fail;

/// An error from joining the job, as a status of ddl.h; DDL_ERROR_BOOTSTRAP if no other status is more exact.
inline Failure to_failure(const Error& error) {
  if (is_interruption(error)) return Failure{DDL_ERROR_INTERRUPTED, error.message()};
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
    case ErrorCode::kProtocol:
    case ErrorCode::kBusy: break;
  }
  return Failure{status, error.message()};
}

// Why a job's ranks cannot go on, in a form that all ranks of all hosts share.

enum class AbortReason : std::uint32_t {
  kDied = 1,         ///< the culprit's process ended without leaving
  kLeft = 2,         ///< the culprit left while another rank waited for it
  kTimedOut = 3,     ///< the culprit gave up waiting
  kLost = 4,         ///< the culprit cannot be reached any more; text is the system's error
  kBroken = 5,       ///< the culprit violated the protocol; text describes how
  kAborted = 6,      ///< the culprit called ddl_abort() with this code and text
  kFailed = 7,       ///< the culprit cannot go on; text says why
  kInterrupted = 8,  ///< the culprit's program has ended a wait
};

/// True for the values above. Needed because a reason is read from shared memory or from the network.
constexpr bool is_abort_reason(std::uint32_t value) { return value >= 1 && value <= 8; }

/// Plain data: it lies in shared memory and travels between hosts.
struct AbortNotice {
  AbortReason reason = AbortReason::kDied;
  std::int32_t rank = 0;  ///< the culprit
  std::int32_t pid = 0;
  std::int32_t code = 0;  ///< kAborted: the job's exit code
  HostField host;
  TextField<432> text;  ///< kTimedOut: the complete message, the same for all ranks

  static AbortNotice of(AbortReason reason, const Member& culprit, const std::string& text = "",
                        int code = 0) {
    return {reason, culprit.rank, culprit.pid, code, HostField::of(culprit.host), TextField<432>::of(text)};
  }
  /// For a rank that could not connect to others, and so cannot go on.
  static AbortNotice of_failed_link(const Error& error, const Member& self) {
    return is_interruption(error) ? of(AbortReason::kInterrupted, self)
                                  : of(AbortReason::kLost, self, error.message());
  }
  /// The status and the message for a rank that is in this call. entered: it had begun to wait for others.
  Failure describe(const Call& call, bool entered) const;
  /// The same for something else that the rank does: "during ...".
  Failure describe_during(const std::string& what) const { return describe_when(" during " + what); }

 private:
  Failure describe_when(const std::string& when) const;
};
static_assert(sizeof(AbortNotice) == 512);

/// The failure of a rank that itself waited for the awaited ranks in the call when others gave up waiting. One of
/// these may be the rank that everybody waits for in the end, because it may wait in another set's call. So the
/// message is extended by those that it does not name. Failures other than timeouts are unchanged.
Failure with_awaited(Failure failure, const Call& call, const Members& awaited);

}  // namespace ddl::runtime
