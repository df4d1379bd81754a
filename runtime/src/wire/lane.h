// The data connections of one rank to its partners on other hosts.
//
// Sends and receives are posted; posting does not wait. A partner that stops reading delays only the data that go to
// it, and with several sockets to a partner (wire/socket_bundle.h) a slow socket delays only the fragment that it
// carries. A waiting rank progresses all connections.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/src/common/failure.h"
#include "runtime/src/common/interruption.h"
#include "runtime/src/common/wait_limits.h"
#include "runtime/src/shm/abort.h"
#include "runtime/src/shm/channel.h"
#include "runtime/src/wire/control_links.h"
#include "runtime/src/wire/link_transport.h"
#include "runtime/src/wire/slice_queue.h"
#include "runtime/src/wire/socket_bundle.h"

namespace ddl::runtime {

/// Not thread-safe: used by the rank that is inside a call.
class Lane {
 public:
  /// Takes the data connections out of links, which control was made of as well. self, abort and control
  /// outlive this.
  /// self: this rank.
  Lane(const Member& self, std::vector<PeerLink>& links, const AbortDomain& abort, ControlLinks& control,
       WaitPolicy policy);

  /// Takes further ones, which control has taken as well.
  void add(std::vector<PeerLink>& links);

  /// The next bytes of the ordered stream, which begins with kOrderedMagic after each call's slices. The bytes must
  /// not change until pending is 0: then the kernel has them.
  void post_send(int host, std::span<const std::byte> bytes, Pending& pending);
  /// The next bytes that the partner sends on the ordered stream. They are written until pending is 0.
  void post_receive(int host, std::span<std::byte> bytes, Pending& pending);
  /// A slice. Of frame, only call, chunk and turn are used.
  void post_slice_send(int host, const SliceFrame& frame, std::span<const std::byte> bytes, Pending& pending);
  /// From now on slices of this chunk, of at most longest bytes, may arrive in any order. Chunks are begun in order.
  void begin_chunk(std::uint64_t call, std::uint64_t chunk, std::size_t longest);
  /// Receives the slice of this call, chunk and turn, whenever the partner sends it. Not while a post_receive() is
  /// pending.
  void post_slice(int host, const SliceFrame& frame, std::span<std::byte> bytes, Pending& pending);

  /// Sends and receives as much as possible without waiting; true if any bytes moved.
  bool move();

  /// Moves bytes until advance() returns true; advance() is called whenever bytes have moved, and may post more.
  /// Fails when the group is aborted, a partner that is needed is gone, or the call's deadline has passed.
  template <class Advance>
  Outcome drive(const Call& call, const CallDeadline& deadline, Advance advance) {
    if (advance()) return {};
    Wait wait(*this, call, deadline);
    for (;;) {
      if (move()) {
        if (advance()) return {};
        wait.start_over();
        continue;
      }
      if (auto waited = wait.once(); !waited) return waited;
    }
  }

  /// The partner on this host has sent unexpected data: aborts the group and returns that failure.
  Outcome out_of_step(int host, const Call& call);

  /// How long this rank has slept in drive(), in nanoseconds.
  std::int64_t slept() const { return slept_; }

  /// The connections' descriptors.
  std::vector<int> fds() const;

 private:
  struct Partner {
    int host = 0;
    SocketBundle sockets;
  };

  /// One wait: it spins for a limited time after the last bytes have moved, then sleeps.
  class Wait {
   public:
    Wait(Lane& lane, const Call& call, const CallDeadline& deadline);
    /// Yields or sleeps once; fails if waiting longer is useless.
    Outcome once();
    /// Bytes have moved: more may follow at once.
    void start_over() { spins_anew_ = true; }

   private:
    Outcome sleep();

    Lane& lane_;
    const Call& call_;
    const CallDeadline& deadline_;
    Deadline give_up_;
    Interruption interruption_;
    std::chrono::nanoseconds spin_;
    Deadline spin_until_ = Deadline::never();
    bool spins_anew_ = true;
    int probes_ = 0;  ///< since it began to spin
  };

  Partner& partner(int host);
  /// A partner whose connections are broken and needed; null if there is none.
  Partner* needed_and_broken();
  const Member& member_of(const Partner& partner) const;
  Outcome aborted(const Call& call) const;
  Outcome partner_ended(Partner& partner, const Call& call);
  Outcome timed_out(const Call& call, double seconds);
  Outcome interrupted(const Call& call);

  std::vector<Partner> partners_;  ///< in the order of the control links
  const Member& self_;
  const AbortDomain& abort_;
  ControlLinks& control_;
  WaitPolicy policy_;
  std::int64_t slept_ = 0;
};

}  // namespace ddl::runtime
