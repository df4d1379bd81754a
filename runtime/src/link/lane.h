// The data connections of one rank to its partners on other hosts, as ordered byte streams in both directions.
//
// What is to be sent and where what arrives is to be put is posted; posting does not wait. Each direction of each
// connection handles what was posted in order, independently of all others: a partner that stops reading holds up nothing
// but what goes to it. Whoever waits drives all of them.
#pragma once

#include <cstddef>
#include <deque>
#include <span>
#include <vector>

#include "runtime/src/channel/abort.h"
#include "runtime/src/channel/channel.h"
#include "runtime/src/channel/wait_policy.h"
#include "runtime/src/failure.h"
#include "runtime/src/link/control_links.h"
#include "runtime/src/link/slice_frame.h"
#include "runtime/src/transport/link_transport.h"

namespace ddl::runtime {

/// Counts what was posted and has not been handled; lives until it is 0 again.
using Pending = int;

/// Not thread-safe: used by the rank that is inside a call.
class Lane {
 public:
  /// Takes the data connections out of links, which control was made of as well. abort and control outlive this.
  Lane(std::vector<PeerLink>& links, const GroupAbort& abort, ControlLinks& control, int own_index,
       WaitPolicy policy);

  /// Takes further ones, which control has taken as well.
  void add(std::vector<PeerLink>& links);

  /// Bytes must stay as they are until pending is 0: then the kernel has them.
  void post_send(int host, std::span<const std::byte> bytes, Pending& pending);
  /// The next bytes that the partner sends. Bytes are being written until pending is 0.
  void post_receive(int host, std::span<std::byte> bytes, Pending& pending);
  /// The bytes after this frame, whenever the partner sends it. Not while a post_receive() is pending.
  void post_slice(int host, const SliceFrame& frame, std::span<std::byte> bytes, Pending& pending);

  /// Moves what can be moved without waiting; true if anything was.
  bool move();

  /// Moves bytes until advance() returns true; advance() is called whenever something has moved, and may post more.
  /// Fails when the group is aborted, a partner that is needed is gone, or the call's deadline has passed.
  template <class Advance>
  Outcome drive(const Call& call, const CallDeadline& deadline, Advance advance) {
    if (advance()) return {};
    Wait wait(*this, call, deadline);
    for (;;) {
      if (move()) {
        if (advance()) return {};
        continue;
      }
      if (auto waited = wait.once(); !waited) return waited;
    }
  }

  /// The partner on this host has sent what does not belong here: aborts the group and says so.
  Outcome out_of_step(int host, const Call& call);

  /// The connections' descriptors.
  std::vector<int> fds() const;

 private:
  template <class Byte>
  struct Posted {
    Byte* data = nullptr;
    std::size_t size = 0;
    Pending* pending = nullptr;
  };
  /// A slice that has been announced to this rank by its own steps, but not by the partner yet.
  struct Awaited {
    SliceFrame frame;
    Posted<std::byte> to;
  };
  struct Partner {
    int host = 0;
    UniqueFd socket;
    std::deque<Posted<const std::byte>> sends;
    std::deque<Posted<std::byte>> receives;
    std::vector<Awaited> slices;
    SliceFrame head;             ///< the frame that is arriving, or has arrived and ...
    std::size_t head_bytes = 0;  ///< ... so much of it; whole: nobody has asked for its slice yet
    bool is_broken = false;
    std::string broken_why;
    bool is_out_of_step = false;

    bool wants_frame() const { return !slices.empty() && head_bytes < sizeof head; }
    bool wants_bytes() const { return !receives.empty() || wants_frame(); }
    bool receives_any() const { return !receives.empty() || !slices.empty(); }
  };

  /// One wait: spins for a time, then sleeps.
  class Wait {
   public:
    Wait(Lane& lane, const Call& call, const CallDeadline& deadline);
    /// Lets some time pass; fails if there is no use in waiting longer.
    Outcome once();

   private:
    Outcome sleep();

    Lane& lane_;
    const Call& call_;
    const CallDeadline& deadline_;
    Deadline give_up_;
    Deadline spin_until_;
  };

  Partner& partner(int host);
  static bool move_sends(Partner& partner);
  static bool move_receives(Partner& partner);
  /// Reads on in the frame, and once it is whole begins to receive its slice.
  static bool move_frame(Partner& partner);
  /// Begins to receive the slice whose frame has arrived, if it has been asked for.
  static void match_frame(Partner& partner);
  /// Notes what a system call that received has done; true if it brought something.
  static bool note_received(Partner& partner, ssize_t got);
  /// The partner whose connection has ended although it is needed.
  Partner* needed_and_broken();
  const Member& member_of(const Partner& partner) const;
  Outcome aborted(const Call& call) const;
  /// The same, when this thread or the watching one is just raising it.
  Outcome wait_raised(const Call& call) const;
  Outcome partner_ended(Partner& partner, const Call& call);
  Outcome timed_out(const Call& call, double seconds);

  std::vector<Partner> partners_;  ///< in the order of the control links
  const GroupAbort& abort_;
  ControlLinks& control_;
  int own_index_;
  WaitPolicy policy_;
};

}  // namespace ddl::runtime
