// The control connections to the partners on other hosts, over which deaths, aborts and farewells are told.
#pragma once

#include <array>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "base/deadline.h"
#include "base/fd.h"
#include "runtime/src/common/failure.h"
#include "runtime/src/shm/abort.h"
#include "runtime/src/wire/link_transport.h"

namespace ddl::runtime {

// What ranks of different hosts say to each other outside of collectives.

/// Always whole and of one size, so that nothing that arrives is taken for a length. Plain data between machines of one
/// byte order, which the handshake has checked.
struct ControlFrame {
  enum class Kind : std::uint32_t {
    kAbort = 1,     ///< the job cannot go on; notice says why
    kFarewell = 2,  ///< the sender leaves in order and will say nothing more
  };
  static constexpr std::uint32_t kMagic = 0x44444C43;  // "DDLC"

  std::uint32_t magic = kMagic;
  Kind kind = Kind::kFarewell;
  AbortNotice notice;

  /// nullopt unless the bytes are a frame.
  static std::optional<ControlFrame> parse(std::span<const std::byte> bytes);
};
static_assert(sizeof(ControlFrame) == 520);

// The control connections to the partners on other hosts: deaths, aborts and farewells.
//
// An abort goes through the whole job: a rank that learns of one raises it in its own host's group, whose doorbell wakes
// the watching threads of all local ranks, and each tells its partners. No call returns with the abort before its own rank
// has done so; otherwise its process might end first, and its partners would take the neighbour's end for the cause.
//
// A process that ends closes its connections. Who left in order has said farewell before; everybody else has died.

enum class PeerState {
  kConnected,
  kLeft,  ///< said farewell
  kGone,  ///< died, cannot be reached, or sent nonsense: the group has been aborted for it
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

  /// For the watching thread: reads what has arrived; false when nothing more is to come.
  bool on_readable(std::size_t link);
  /// For the watching thread, when the doorbell rings: tells all partners of the group's abort, once.
  void forward_abort();

  /// For a rank inside a call: returns when the partners have been told of the abort, or the deadline has passed.
  void wait_forwarded(Deadline deadline);
  /// For a rank whose data connection has ended: waits until it is known why, or the deadline has passed.
  PeerState wait_ended(std::size_t link, Deadline deadline);

  /// A peer that has said farewell; nullopt if none has.
  std::optional<Member> first_left() const;

  /// When nobody watches any more: says farewell, or forwards an abort that nobody has yet. Nothing can be sent after.
  void send_farewell();
  /// Waits until the partners have heard it, so that closing the connections cannot overtake it.
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
  void lose(Link& link, AbortReason reason, const std::string& text);
  static void send(const Link& link, const ControlFrame& frame);

  const AbortDomain& abort_;
  std::deque<Link> links_;  ///< none ever moves; guarded by mutex_, what it holds by the rules above
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool forwarded_ = false;  ///< guarded by mutex_
};

}  // namespace ddl::runtime
