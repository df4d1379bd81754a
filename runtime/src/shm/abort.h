// The abort of a group: the first cause wins, all ranks are woken, and all report the same cause.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "base/deadline.h"
#include "runtime/src/common/call.h"
#include "runtime/src/common/failure.h"
#include "runtime/src/common/member.h"
#include "runtime/src/shm/segment.h"

namespace ddl::runtime {

/// Why a group was aborted. Fits into one word, so that one compare-and-swap decides which cause was the first.
struct AbortCause {
  enum class Where : std::uint8_t {
    kDied = 1,      ///< the member's process ended without leaving
    kLeft = 2,      ///< the member left while another waited for it
    kTimedOut = 3,  ///< the member gave up waiting; its timeout record names the ranks that it waited for
    kReported =
        4,  ///< the member knows a cause that lies outside this segment; its notice record describes it
  };
  Where where = Where::kDied;
  int member = 0;  ///< index

  std::uint64_t encode() const {
    return static_cast<std::uint64_t>(where) << 32 | static_cast<std::uint32_t>(member);
  }
  static std::optional<AbortCause> decode(std::uint64_t word);
};

/// Marks a member of a segment as having left; next would be its next sequence. Aborts the group if another member
/// has published next, because that member would wait for ever. doorbell: the group's, or -1.
void leave_segment(Segment segment, int index, std::uint32_t next, int doorbell);

/// The ranks of a segment that are aborted together, from the view of one of them. All functions may be called from
/// any thread.
class AbortDomain {
 public:
  /// index: of this member. doorbell: an eventfd of the group that stays readable once the group has been aborted, so
  /// that it also wakes members that sleep in poll(). members and doorbell outlive this.
  AbortDomain(Segment segment, const Members& members, int index, int doorbell)
      : segment_(segment), members_(members), index_(index), doorbell_(doorbell) {}

  /// Makes cause the group's cause unless there is one already, and wakes all sleepers on any flag or on the
  /// doorbell. Every rank that sees a cause calls it, because the first one may be killed before it has woken the
  /// others.
  void raise(AbortCause cause) const;
  /// Gives up waiting for the members whose bits are set in missing: fills this member's timeout record, then raises.
  void raise_timeout(double seconds, const Call& call,
                     const std::array<std::uint64_t, kMaxMembers / 64>& missing) const;
  /// The same after waiting for a rank of another host, which may itself be waiting for others.
  void raise_timeout(double seconds, const Call& call, const Member& awaited) const;
  /// For a cause that lies outside this segment: fills this member's notice record and raises. If another thread of
  /// this member has begun to fill it, waits for that thread instead. As with the functions above, the group is
  /// aborted when this returns.
  void raise(const AbortNotice& notice) const;

  bool is_raised() const { return segment_.abort_line().cause.load() != 0; }
  /// Sleeps until the group is aborted or the deadline has passed. Returns whether it is aborted.
  bool wait_raised(Deadline deadline) const;
  /// The cause of the abort, in the form that is also sent to other hosts. Only if is_raised().
  AbortNotice notice() const;
  /// The cause as status and message for a rank that is in this call. entered: it had begun to wait for others.
  Failure describe(const Call& call, bool entered) const { return notice().describe(call, entered); }

  /// This member leaves; next would be its next sequence.
  void leave(std::uint32_t next) const { leave_segment(segment_, index_, next, doorbell_); }
  bool has_left(int index) const { return segment_.presence(index).presence.load() == Presence::kLeft; }
  /// Some member has left.
  bool has_any_left() const { return segment_.abort_line().any_left.load() != 0; }
  /// The first member that has left without having published the sequence.
  std::optional<int> first_left(std::uint32_t sequence) const;

  /// A member that sleeps until another host sends data knows better than the other ranks of its host which rank is
  /// missing.
  void set_waits_for_other_host(bool waits) const {
    segment_.presence(index_).waits_for_other_host.store(waits ? 1 : 0, std::memory_order_relaxed);
  }
  bool waits_for_other_host(int index) const {
    return segment_.presence(index).waits_for_other_host.load() != 0;
  }

  int doorbell() const { return doorbell_; }

 private:
  std::string describe_timeout(int culprit) const;

  Segment segment_;
  const Members& members_;
  int index_;
  int doorbell_;
};

}  // namespace ddl::runtime
