#include "runtime/src/channel/abort.h"

#include <cstdio>

#include "runtime/src/channel/flag_protocol.h"
#include "runtime/src/channel/futex.h"

namespace ddl::runtime {
namespace {

/// A sentence names at most so many ranks; a job of a thousand must stay readable.
constexpr int kMaxNamed = 8;

std::string seconds_text(double seconds) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.3g s", seconds);
  return text.data();
}

}  // namespace

std::optional<AbortCause> AbortCause::decode(std::uint64_t word) {
  if (word == 0) return std::nullopt;
  return AbortCause{static_cast<AbortReason>(word >> 32), static_cast<int>(word & 0xFFFF'FFFF)};
}

void GroupAbort::raise(AbortCause cause) const {
  std::uint64_t none = 0;
  segment_.abort_line().cause.compare_exchange_strong(none, cause.encode());
  FutexPlatform platform;
  FlagProtocol protocol(platform);
  for (int i = 0; i < segment_.members(); ++i) {
    for (const unsigned parity : {0u, 1u}) protocol.interrupt(segment_.flag(i, parity).word);
  }
}

void GroupAbort::raise_timeout(int own_index, double seconds, const Call& call,
                               const std::array<std::uint64_t, kMaxMembers / 64>& missing) const {
  TimeoutRecord& record = segment_.timeout_record(own_index);
  record.seconds = seconds;
  record.call = call;
  record.missing = missing;
  raise({AbortReason::kTimedOut, own_index});
}

std::optional<AbortCause> GroupAbort::cause() const {
  return AbortCause::decode(segment_.abort_line().cause.load());
}

std::string GroupAbort::describe_timeout(int culprit) const {
  const TimeoutRecord& record = segment_.timeout_record(culprit);
  std::string missing;
  int count = 0;
  for (std::size_t i = 0; i < members_.size(); ++i) {
    if ((record.missing[i / 64] >> (i % 64) & 1) == 0) continue;
    if (++count <= kMaxNamed) missing += (count == 1 ? "" : ", ") + members_[i].describe();
  }
  if (count > kMaxNamed) missing += " and " + std::to_string(count - kMaxNamed) + " more";
  return members_[static_cast<std::size_t>(culprit)].place() + " gave up after " +
         seconds_text(record.seconds) + " in " + record.call.describe() + ": not arrived: " + missing;
}

Failure GroupAbort::describe(const AbortCause& cause, const Call& call, bool entered) const {
  const std::string who = members_[static_cast<std::size_t>(cause.culprit)].describe();
  const std::string when = (entered ? " during " : " before ") + call.describe();
  switch (cause.reason) {
    case AbortReason::kDied: return {DDL_ERROR_PEER_LOST, who + " died" + when};
    case AbortReason::kLeft: return {DDL_ERROR_PEER_LOST, who + " left the job (finalize)" + when};
    case AbortReason::kTimedOut: return {DDL_ERROR_TIMEOUT, describe_timeout(cause.culprit)};
  }
  return {DDL_ERROR_INTERNAL, "the group was aborted for an unknown reason"};
}

void GroupAbort::leave(int own_index) const {
  segment_.presence(own_index).presence.store(Presence::kLeft);
  FutexPlatform platform;
  FlagProtocol protocol(platform);
  for (const unsigned parity : {0u, 1u}) protocol.interrupt(segment_.flag(own_index, parity).word);
}

}  // namespace ddl::runtime
