// A channel: the flags, the staging and the sequence of one stream of collectives.
//
// The only step is the exchange. A rank that has filled its staging slot publishes its sequence and its call, waits
// until all others have published the same sequence, and may then read all slots. A few ranks read each other's flags
// directly; many synchronize in groups (shm/exchange_groups.h), which only changes who waits for whom. There are two
// slots and two flag lines per rank, used in turn: the data of sequence s are overwritten for s+2, which no rank
// begins before all have published s+1, and a rank publishes s+1 only when it has finished s. So neither needs a lock
// or an acknowledgement.
//
// Two members that both write and read may swap their slots each time: what a member writes next is what it has read
// last (shm/store_choice.h).
//
// When a rank has a reason to give up, it reads the flags of all: if all have published the sequence, the exchange
// has succeeded, whether or not a leader has released this rank; otherwise the ranks that have not are the missing
// ones.
//
// After a mismatch all ranks have published the same sequence, so the channel stays usable.
//
// A rank that needs nothing more from the others, as the root of a broadcast, may run ahead: it publishes its last
// sequence of the call and does not wait. It catches up before its next call, or before it leaves, and compares the
// calls then.
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
#include "runtime/src/common/rank_record.h"
#include "runtime/src/common/wait_limits.h"
#include "runtime/src/shm/abort.h"
#include "runtime/src/shm/exchange_groups.h"
#include "runtime/src/shm/segment.h"
#include "runtime/src/shm/shared_heap.h"
#include "runtime/src/shm/store_choice.h"

namespace ddl::runtime {

/// When a call gives up, and the length of its timeout (for the message).
struct CallDeadline {
  Deadline deadline = Deadline::never();
  double seconds = 0.0;

  static CallDeadline after(double seconds) { return {Deadline::after_seconds(seconds), seconds}; }
  /// For a rank that lets others find out first which rank is missing: the deadline plus this number of grace
  /// periods.
  Deadline later(int times) const {
    if (deadline.is_never()) return deadline;
    return Deadline::after(deadline.remaining() + grace(times));
  }
  /// The same for a rank that polls: whether the deadline plus this number of grace periods has passed.
  bool has_passed_by(int times) const {
    return !deadline.is_never() && Deadline::Clock::now() >= deadline.when() + grace(times);
  }

 private:
  Deadline::Clock::duration grace(int times) const {
    return std::chrono::duration_cast<Deadline::Clock::duration>(
        std::chrono::duration<double>(times * std::min(seconds / 4, 0.25)));
  }
};

/// How the members of a call use their slots.
enum class SlotUse : std::uint8_t {
  kOneWay,   ///< some of them only write, or only read, or send what they have written to other hosts
  kBothWays  ///< each writes, and before it publishes again, it has read what all others have written
};

/// Not thread-safe: one call at a time.
class Channel {
 public:
  /// members, abort, heap and fault outlive the channel. heap: shared by the members, and possibly by other ranks.
  Channel(Segment segment, const Members& members, const AbortDomain& abort, int index, WaitPolicy policy,
          const SharedHeap& heap, FaultInjector& fault, ArrivalWaits waits);

  const Members& members() const { return members_; }
  int index() const { return index_; }
  const Member& self() const { return members_[index_]; }
  int size() const { return segment_.size(); }
  std::size_t slot_bytes() const { return segment_.slot_bytes(); }
  /// The bytes of a slot that a chunk is to have at most: those that two members pass to each other stay in their caches.
  std::size_t chunk_room(SlotUse use) const {
    return may_swap(use) ? std::min(slot_bytes(), kMostSwapped) : slot_bytes();
  }

  /// Begins a call: gives it its number, unless it has one because it continues a call, and fails if the group has
  /// been aborted. chunk_bytes: the maximum of a slot that it uses. It and the use are the same on all ranks that make
  /// this call.
  Outcome begin(const Call& call, CallDeadline deadline, std::size_t chunk_bytes,
                SlotUse use = SlotUse::kOneWay) {
    // Most programs repeat a call.
    return begin(call, call == call_ ? fingerprint_ : call.fingerprint(), deadline, chunk_bytes, use);
  }
  /// The same with the fingerprint of the call.
  Outcome begin(const Call& call, std::uint64_t fingerprint, CallDeadline deadline, std::size_t chunk_bytes,
                SlotUse use);
  /// Measures the work of this rank in the call that was begun, from now until end_sampling(), without waiting. For calls
  /// in which the ranks only stage and take; all members do this alike.
  void begin_sampling();
  void end_sampling();
  /// Chooses the stores of the calls that follow. All members call this before the first call.
  void choose_stores(StoreChoice choice);
  const StoreChoice& choice() const { return choice_; }
  /// How this rank is to store what it stages for the next exchange.
  Stores stores() const { return stores_; }
  /// This rank's staging slot for the next exchange, of chunk_bytes of the call; aligned for every type.
  std::byte* own_slot() const { return slot_at(index_, sequence_ + 1); }
  /// A few bytes that every rank publishes beside its slot, in calls whose chunks are larger than a note.
  struct Note {
    std::uint64_t words[2];
  };
  void show(const Note& note);  ///< at the next exchange
  Note note_of(int index) const;
  /// At the last exchange before this call, some rank had allocated memory of the shared heap. The same on all ranks.
  bool somebody_uses_heap() const;
  const SharedHeap& heap() const { return heap_; }
  /// The program's call, after a step of it that has failed: messages name it.
  void set_call(const Call& call) {
    call_ = call;
    fingerprint_ = call.fingerprint();
  }
  /// How the last call was executed; what executes it sets it.
  Path path() const { return path_; }
  void set_path(Path path) { path_ = path; }
  /// The call that was begun, with its number, and when it gives up.
  const Call& call() const { return call_; }
  const CallDeadline& deadline() const { return deadline_; }
  /// Of the calls of this channel.
  ArrivalWaits& waits() { return waits_; }
  /// The last exchange of a call, for a rank that reads no slot after it: it may return before the others have arrived,
  /// and must catch up before the next call begins.
  Outcome exchange_ahead();
  /// Waits for the exchange that this rank ran ahead of, if there is one, and compares. A failure names that call.
  Outcome catch_up(CallDeadline deadline) { return is_ahead_ ? await_others(deadline) : Outcome(); }
  /// One exchange of the call that was begun. Fails, on all ranks alike, if they have begun different calls.
  Outcome exchange();
  /// An exchange without a comparison, for callers that have compared already or do so with mismatched_member().
  Outcome synchronize();
  /// The two halves of synchronize(), for a backend whose ranks all use these, because a waiting rank has to progress
  /// something else: arrive() publishes this rank's sequence, and poll_arrival() checks whether all have. nullopt:
  /// some have not, and there is no reason to give up.
  void arrive();
  std::optional<Outcome> poll_arrival();
  /// At the last exchange: the first member whose call differed from that of member 0; nullopt if there is none.
  std::optional<int> mismatched_member() const;
  /// A member's call at the last exchange.
  const Call& call_of(int index) const { return segment_.call(index, sequence_ & 1).call; }
  /// A point of the call at which a test may kill or stop this rank.
  void pass(FaultPoint point) { fault_.pass(call_.kind, point); }
  /// A rank's slot at the last exchange; valid until the next.
  const std::byte* slot(int index) const { return slot_at(index, sequence_); }
  /// This rank will exchange no more. It has caught up.
  void leave() const { abort_.leave(sequence_ + 1); }

 private:
  /// A sample: up to kSampleExchanges exchanges of one call with the same stores. All members count them alike, measure
  /// their own work, and publish it at the exchange after the sample.
  struct Sample {
    int chunk_class = 0;
    /// What it is a sample of; nullopt: not of that.
    std::optional<Stores> stores;
    std::optional<Slots> slots;
    int exchanges = 0;
    /// Staging or taking a chunk is half of its work. The halves that have been measured.
    int halves = 0;
    int next_halves = 1;           ///< of the work until the next publication; 0: it belongs to two samples
    std::uint64_t work = 0;        ///< in units of the clock
    std::uint64_t work_began = 0;  ///< at this time
    CallKind kind = CallKind::kNone;  ///< once it has ended
    std::size_t bytes = 0;            ///< whose work was measured; once it has ended

    /// At a publication.
    void add_work();
  };

  std::byte* slot_at(int index, std::uint32_t sequence) const {
    const unsigned parity = sequence & 1;
    if (is_small_) return segment_.flag(index, parity).payload.data();
    const int area = index ^ static_cast<int>(swapped_ >> parity & 1);
    return segment_.slot(area, parity) + sequence / 2 % subslots_ * subslot_bytes_;
  }
  /// Waits until the word, a flag or one of a leader's, has reached the sequence.
  Outcome wait_for(SharedWord& word);
  Outcome sleep_on(SharedWord& word);
  /// The first member that has not arrived at this exchange.
  std::optional<int> first_missing() const;
  /// The stores for chunks of the call, as the first member published them at the last exchange.
  Stores published_stores() const;
  /// The same for the slots of two members.
  Slots published_slots() const;
  void end_sample();
  bool has_exchanged() const { return sequence_ != segment_.first_sequence(); }
  bool may_swap(SlotUse use) const { return size() == 2 && use == SlotUse::kBothWays; }
  /// Of the stores of the call that was begun, if it may be one.
  std::optional<Stores> sampled_stores() const;
  /// Before this rank publishes the next sequence: the slots of the last exchange are no longer read.
  void swap_slots();
  /// Begins to fetch the lines that this rank writes for the next exchange.
  void prefetch_next();
  /// Waits for all members, which this rank has told that it has arrived.
  Outcome meet();
  Outcome await_others(CallDeadline deadline);
  /// The failure of a call in which this member has begun another one than the first member.
  Outcome mismatch(int member) const;
  /// What follows when all members have arrived.
  void all_arrived();
  /// On the first member: passes the work of all members in a sample, which they published at the last exchange, to the
  /// choice.
  void note_sample(const Sample& sample);
  bool should_stop() const { return abort_.is_raised() || abort_.first_left(sequence_).has_value(); }
  bool all_missing_wait_for_other_hosts() const;
  bool all_are_here() const;
  enum class Reason : std::uint8_t { kOther, kTimeout, kInterrupted };
  Outcome give_up(Reason reason);
  /// What a member has published at the last exchange. The own line is not read: others have just taken it, and to get it
  /// back takes as long as another exchange.
  FlagLine::Notes notes_of(int index) const;
  std::uint64_t fingerprint_of(int index) const;

  Segment segment_;
  const Members& members_;
  const AbortDomain& abort_;
  int index_;
  WaitPolicy policy_;
  const SharedHeap& heap_;
  FaultInjector& fault_;
  ArrivalWaits waits_;
  ExchangeRole role_;
  std::uint32_t sequence_;
  std::uint32_t first_sequence_;  ///< of the call: members that arrive late at it are late for the call
  std::uint64_t calls_ = 0;
  Call call_;
  Path path_ = Path::kNone;
  std::uint64_t fingerprint_ = 0;
  FlagLine::Notes notes_{};  ///< published at the last exchange
  bool is_ahead_ = false;    ///< has not waited for the others at the last exchange
  bool is_small_ = false;    ///< the call's chunks fit into flag lines
  // Two members swap their slots of this parity before they use them again, if both have published a call that does so.
  SlotUse use_ = SlotUse::kOneWay;        ///< of the call that was begun
  bool is_swapping_ = false;              ///< it swaps
  std::optional<std::uint64_t> to_swap_;  ///< the fingerprint of the last exchange, if its call did
  std::uint32_t swapped_ = 0;             ///< bit p: the slots of parity p are swapped
  // Chunks that are smaller than a slot use its subslots in turn, so that staged data have moved to a cache that the
  // ranks share before they are overwritten.
  std::uint32_t subslots_ = 1;
  std::size_t subslot_bytes_ = 0;
  CallDeadline deadline_;

  StoreChoice choice_{Stores::kPlain, StoreChoice::Origin::kGiven};  ///< that of the first member holds
  std::uint32_t streamed_classes_ = 0, turning_classes_ = 0;         ///< the choice's
  Stores stores_ = Stores::kPlain;
  std::size_t chunk_bytes_ = 0;
  std::optional<Sample> sample_;            ///< of the call that was begun
  std::optional<Sample> ended_sample_;      ///< its work is published at the next exchange
  std::optional<Sample> published_sample_;  ///< its work was published at the last exchange
};

}  // namespace ddl::runtime
