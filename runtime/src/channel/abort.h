// The abort of a group: the first cause wins, everybody is woken, everybody tells the same story.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "runtime/src/channel/call.h"
#include "runtime/src/channel/segment.h"
#include "runtime/src/failure.h"
#include "runtime/src/transport/member.h"

namespace ddl::runtime {

enum class AbortReason : std::uint8_t {
  kDied = 1,      ///< the culprit's process ended without leaving
  kLeft = 2,      ///< the culprit left while somebody waited for it
  kTimedOut = 3,  ///< the culprit gave up waiting; its timeout record says for whom
};

/// Why a group was aborted. Fits into one word, so that one compare-and-swap decides which cause was the first.
struct AbortCause {
  AbortReason reason = AbortReason::kDied;
  int culprit = 0;  ///< index of the member

  std::uint64_t encode() const {
    return static_cast<std::uint64_t>(reason) << 32 | static_cast<std::uint32_t>(culprit);
  }
  static std::optional<AbortCause> decode(std::uint64_t word);
};

/// Aborts the group of a segment and reads its cause. All functions may be called from any thread of any member.
class GroupAbort {
 public:
  GroupAbort(Segment segment, const Members& members) : segment_(segment), members_(members) {}

  /// Makes cause the group's cause unless there is one already, and wakes whoever sleeps on any flag. To be called by
  /// everybody who sees a reason: the first to do so may be killed before it has woken the others.
  void raise(AbortCause cause) const;
  /// Gives up waiting: fills this member's timeout record, then raises.
  void raise_timeout(int own_index, double seconds, const Call& call,
                     const std::array<std::uint64_t, kMaxMembers / 64>& missing) const;
  bool is_raised() const { return segment_.abort_line().cause.load() != 0; }
  std::optional<AbortCause> cause() const;
  /// The cause as status and sentence for a rank that is in this call. entered: it had begun to wait for others.
  Failure describe(const AbortCause& cause, const Call& call, bool entered) const;

  /// Marks a member as having left and wakes whoever sleeps on its flags. Called by that member.
  void leave(int own_index) const;
  bool has_left(int index) const { return segment_.presence(index).presence.load() == Presence::kLeft; }

 private:
  std::string describe_timeout(int culprit) const;

  Segment segment_;
  const Members& members_;
};

}  // namespace ddl::runtime
