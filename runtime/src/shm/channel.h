// A channel: the flags, the staging and the sequence of one stream of collectives.
//
// The only step is the exchange. In it a rank has filled its staging slot, shows its sequence and what it calls, waits
// until all others have shown the same sequence, and may then read all slots. A few ranks look at each other's flags;
// many meet in groups (shm/exchange_groups.h), which changes who waits for whom and nothing else. There are two slots
// and two flag lines a rank, used in turn: what belongs to sequence s is overwritten for s+2, which nobody begins before
// everybody has shown s+1, and a rank shows s+1 only when it is done with s. So neither needs a lock or an
// acknowledgement.
//
// When there is a reason to give up, a rank looks at the flags of all: if everybody has shown the sequence, the exchange
// has succeeded, whoever was to say so; otherwise those that have not are the ones that are missing.
//
// After a mismatch all ranks have shown the same sequence, so the channel stays usable.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/deadline.h"
#include "runtime/src/common/call.h"
#include "runtime/src/common/failure.h"
#include "runtime/src/common/fault.h"
#include "runtime/src/common/member.h"
#include "runtime/src/common/wait_limits.h"
#include "runtime/src/shm/abort.h"
#include "runtime/src/shm/exchange_groups.h"
#include "runtime/src/shm/segment.h"
#include "runtime/src/shm/shared_heap.h"

namespace ddl::runtime {

/// When a call gives up, and after how long that is (for the sentence).
struct CallDeadline {
  Deadline deadline = Deadline::never();
  double seconds = 0.0;

  static CallDeadline after(double seconds) { return {Deadline::after_seconds(seconds), seconds}; }
  /// For who leaves it to others to find out who is missing: a little later, so many times.
  Deadline later(int times) const {
    if (deadline.is_never()) return deadline;
    return Deadline::after(deadline.remaining() + grace(times));
  }
  /// For who looks at it again and again: so many times of that after it.
  bool has_passed_by(int times) const {
    return !deadline.is_never() && Deadline::Clock::now() >= deadline.when() + grace(times);
  }

 private:
  Deadline::Clock::duration grace(int times) const {
    return std::chrono::duration_cast<Deadline::Clock::duration>(
        std::chrono::duration<double>(times * std::min(seconds / 4, 0.25)));
  }
};

/// Not thread-safe: one call at a time.
class Channel {
 public:
  /// members, abort, heap and fault outlive the channel. heap: which the members share, also with others.
  Channel(Segment segment, const Members& members, const AbortDomain& abort, int index, WaitPolicy policy,
          const SharedHeap& heap, FaultInjector& fault);

  const Members& members() const { return members_; }
  int index() const { return index_; }
  const Member& self() const { return members_[static_cast<std::size_t>(index_)]; }
  int size() const { return segment_.size(); }
  std::size_t slot_bytes() const { return segment_.slot_bytes(); }

  /// Begins a call: gives it its number, unless it has one because it goes on, and fails if the group has been aborted.
  /// chunk_bytes: how much of a slot it uses at most, the same on all ranks that make this call.
  Outcome begin(Call call, CallDeadline deadline, std::size_t chunk_bytes);
  /// This rank's staging slot for the next exchange, of chunk_bytes of the call; aligned for every type.
  std::byte* own_slot() const { return slot_at(index_, sequence_ + 1); }
  /// A few bytes that every rank shows beside its slot, in calls whose chunks are larger than a note.
  struct Note {
    std::uint64_t words[2];
  };
  void show(const Note& note);  ///< at the next exchange
  Note note_of(int index) const;
  /// At the last exchange before this call, some rank had had memory of the shared heap. The same on all ranks.
  bool somebody_uses_heap() const;
  const SharedHeap& heap() const { return heap_; }
  /// The call that was begun, with its number, and when it gives up.
  const Call& call() const { return call_; }
  const CallDeadline& deadline() const { return deadline_; }
  /// One exchange of the call that was begun. Fails, on all ranks alike, if they have begun different calls.
  Outcome exchange();
  /// An exchange that compares nothing, for who has compared already or does so with mismatched_member().
  Outcome synchronize();
  /// The two halves of meet(), for a backend whose ranks all use these, because who waits there has something else to
  /// move: shows this rank, and looks whether all have. Nullopt: some have not, and there is no reason to give up.
  void arrive();
  std::optional<Outcome> poll_arrival();
  /// At the last exchange: the first member that called something else than member 0; nullopt if there is none.
  std::optional<int> mismatched_member() const;
  /// What a member called at the last exchange.
  const Call& call_of(int index) const { return segment_.call(index, sequence_ & 1).call; }
  /// A moment of the call at which a test may kill or stop this rank.
  void pass(FaultPoint point) { fault_.pass(call_.kind, point); }
  /// What a rank had in its slot at the last exchange; valid until the next.
  const std::byte* slot(int index) const { return slot_at(index, sequence_); }
  /// This rank will exchange no more.
  void leave() const { abort_.leave(sequence_ + 1); }

 private:
  std::byte* slot_at(int index, std::uint32_t sequence) const {
    const unsigned parity = sequence & 1;
    if (is_small_) return segment_.flag(index, parity).payload.data();
    return segment_.slot(index, parity) + sequence / 2 % subslots_ * subslot_bytes_;
  }
  /// Until the word, a flag or one of a leader's, shows the sequence.
  Outcome wait_for(SharedWord& word);
  Outcome sleep_on(SharedWord& word);
  bool should_stop() const { return abort_.is_raised() || abort_.first_departed(sequence_).has_value(); }
  bool all_missing_wait_for_other_hosts() const;
  bool all_are_here() const;
  Outcome give_up(bool timed_out);

  Segment segment_;
  const Members& members_;
  const AbortDomain& abort_;
  int index_;
  WaitPolicy policy_;
  const SharedHeap& heap_;
  FaultInjector& fault_;
  ExchangeRole role_;
  std::uint32_t sequence_;
  std::uint64_t calls_ = 0;
  Call call_;
  std::uint64_t fingerprint_ = 0;
  bool is_small_ = false;  ///< the call's chunks fit into flag lines
  // Chunks that are smaller than a slot take turns in its places, so that what was staged last time has gone to a cache
  // that the ranks share before it is overwritten.
  std::uint32_t subslots_ = 1;
  std::size_t subslot_bytes_ = 0;
  CallDeadline deadline_;
};

}  // namespace ddl::runtime
