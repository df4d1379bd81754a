#include "runtime/src/common/failure.h"

namespace ddl::runtime {

Failure AbortNotice::describe(const Call& call, bool entered) const {
  return describe_when((entered ? " during " : " before ") + call.describe());
}

Failure AbortNotice::describe_when(const std::string& when) const {
  const std::string who = Member{rank, host.str(), pid}.describe();
  switch (reason) {
    case AbortReason::kDied: return {DDL_ERROR_PEER_LOST, who + " died" + when};
    case AbortReason::kLeft: return {DDL_ERROR_PEER_LOST, who + " left the job (finalize)" + when};
    case AbortReason::kTimedOut: return {DDL_ERROR_TIMEOUT, text.str()};
    case AbortReason::kLost:
      return {DDL_ERROR_PEER_LOST, who + " cannot be reached any more" + when + ": " + text.str()};
    case AbortReason::kBroken:
      return {DDL_ERROR_INTERNAL, who + " broke the protocol" + when + ": " + text.str()};
    case AbortReason::kAborted:
      return {DDL_ERROR_ABORTED, who + " aborted the job with code " + std::to_string(code) + when +
                                     (text.str().empty() ? "" : ": ") + text.str()};
    case AbortReason::kInterrupted: return {DDL_ERROR_INTERRUPTED, who + " was interrupted" + when};
    case AbortReason::kFailed: return {DDL_ERROR_ABORTED, who + " cannot go on" + when + ": " + text.str()};
  }
  return {DDL_ERROR_INTERNAL, "the group was aborted for an unknown reason"};
}

Failure with_awaited(Failure failure, const Call& call, const Members& awaited) {
  if (failure.status != DDL_ERROR_TIMEOUT) return failure;
  std::string names;
  for (const Member& member : awaited) {
    if (failure.message.find(member.label() + " ") != std::string::npos) continue;
    names += (names.empty() ? "" : ", ") + member.describe();
  }
  if (!names.empty()) failure.message += "; this rank was in " + call.describe() + " and waited for " + names;
  return failure;
}

}  // namespace ddl::runtime
