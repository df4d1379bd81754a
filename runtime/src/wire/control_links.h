// The control connections to the partners on other hosts, which carry aborts and farewells and detect deaths.
#pragma once

#include <array>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "base/deadline.h"
#include "base/fd.h"
#include "runtime/src/common/failure.h"
#include "runtime/src/shm/abort.h"
#include "runtime/src/wire/clock_comparison.h"
#include "runtime/src/wire/link_transport.h"

namespace ddl::runtime {

// The messages between ranks of different hosts outside of collectives.

/// All frames have the same size, so no received value is used as a length. Plain data between machines of one byte
/// order, which the handshake has checked.
struct ControlFrame {
  enum class Kind : std::uint32_t {
    kAbort = 1,     ///< the job cannot go on; notice gives the cause
    kFarewell = 2,  ///< the sender leaves in order and sends nothing more
    kWanted = 3,    ///< the sender wants to agree in the call whose number is in notice.code
    kAskTime = 4,   ///< what time is it? To be sent back with kTime
    kTime = 5,      ///< it is answered
  };
  static constexpr std::uint32_t kMagic = 0x44444C43;  // "DDLC"

  std::uint32_t magic = kMagic;
  Kind kind = Kind::kFarewell;
  AbortNotice notice;
  // Times by the clocks of events (common/event_log.h), in nanoseconds.
  std::int64_t asked = 0;     ///< the asking rank's, when it asked
  std::int64_t answered = 0;  ///< the other rank's

  /// nullopt unless the bytes are a frame.
  static std::optional<ControlFrame> parse(std::span<const std::byte> bytes);
};
static_assert(sizeof(ControlFrame) == 536);

// An abort spreads through the whole job: a rank that learns of one raises it in its own host's group, whose doorbell
// wakes the watching threads of all local ranks, and each notifies its partners. No call returns with the abort
// before its own rank has done so; otherwise its process might end first, and its partners would take that end for
// the cause.
//
// A process that ends closes its connections. A rank that left in order has sent a farewell before; any other has
// died.

enum class PeerState {
  kConnected,
  kLeft,  ///< sent a farewell
  kGone,  ///< died, cannot be reached, or sent an invalid message: the group has been aborted for it
};

class ControlLinks {
 public:
  /// Takes the control connections out of links. abort outlives this.
  ControlLinks(std::vector<PeerLink>& links, const AbortDomain& abort);

  /// Takes further ones.
  void add(std::vector<PeerLink>& links);

  std::size_t size() const;
  int fd(std::size_t link) const { return link_at(link).socket.get(); }
  const Member& peer(std::size_t link) const { return link_at(link).peer; }

  /// What to do, on the watching thread, when a partner wants to agree in a call, or leaves (call 0). Before the links
  /// are watched.
  void on_wanted(std::function<void(std::uint32_t call)> act) { on_wanted_ = std::move(act); }
  /// Answers partners that compare their clocks with this one. Before the links are watched. clock outlives this.
  void answer_times_of(const EventLog& clock) { clock_ = &clock; }
  /// For the watching thread: compares the clock with that of this partner. comparison outlives this.
  void compare_clock(std::size_t link, ClockComparison& comparison);
  /// Tells all partners that this rank wants to agree in this call.
  void send_wanted(std::uint32_t call);

  /// For the watching thread: reads what has arrived; false when the link has ended.
  bool on_readable(std::size_t link);
  /// For the watching thread, when the doorbell rings: notifies all partners of the group's abort, once.
  void forward_abort();

  /// For a rank inside a call: returns when the partners have been notified of the abort, or the deadline has passed.
  void wait_forwarded(Deadline deadline);
  /// For a rank whose data connection has ended: waits until it is known why, or the deadline has passed.
  PeerState wait_ended(std::size_t link, Deadline deadline);

  /// A peer that has sent a farewell; nullopt if none has.
  std::optional<Member> first_left() const;

  /// When the watching thread does not use the links any more: sends farewells, and before them an abort that has not
  /// been forwarded yet. Nothing can be sent afterwards.
  void send_farewell();
  /// Waits until the partners have acknowledged the farewell by closing, so that our close cannot overtake it.
  void wait_acknowledged(Deadline deadline);

 private:
  struct Link {
    Member peer;
    UniqueFd socket;
    std::array<std::byte, sizeof(ControlFrame)> buffer{};
    std::size_t received = 0;
    PeerState state = PeerState::kConnected;  ///< guarded by mutex_; written by the watching thread
  };

  Link& link_at(std::size_t index);
  const Link& link_at(std::size_t index) const { return const_cast<ControlLinks*>(this)->link_at(index); }
  void set_state(Link& link, PeerState state);
  /// A question or an answer.
  void on_time(const Link& link, const ControlFrame& frame);
  void lose(Link& link, AbortReason reason, const std::string& text);
  static void send(const Link& link, const ControlFrame& frame);

  const AbortDomain& abort_;
  std::deque<Link>
      links_;  ///< elements never move; guarded by mutex_, the fields of a link by the rules above
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool forwarded_ = false;  ///< guarded by mutex_
  std::function<void(std::uint32_t call)> on_wanted_;
  const EventLog* clock_ = nullptr;  ///< null: that of the kernel
  ClockComparison* comparison_ = nullptr;
};

}  // namespace ddl::runtime
