// The shared segment of a group of ranks: flags, records and staging of every member, at fixed offsets, and the sizes
// that the first rank chooses before the segment exists.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/error.h"
#include "runtime/src/common/call.h"
#include "runtime/src/common/failure.h"
#include "runtime/src/common/settings.h"

namespace ddl::runtime {

// The sizes of a shared segment, before it exists.

/// The first rank's configuration of the segment that it makes.
struct SegmentConfig {
  std::size_t slot_bytes = std::size_t{32} << 10;  ///< one staging slot; a multiple of 64
  std::size_t heap_bytes = 0;  ///< of each member's part of the shared heap; a multiple of the page size
  /// One staging slot of every pair of members; a multiple of 64, or 0 for no pairs.
  std::size_t pair_slot_bytes = 0;
  bool has_duplicate = false;        ///< a second segment of the same members follows
  std::uint32_t event_capacity = 0;  ///< of each member's ring of events; a power of two, or 0 for no rings
  std::uint32_t first_sequence = 0;  ///< sequence that the first exchange follows; tests start near the wrap
  ExchangeConfig exchange;           ///< how the members synchronize
};

// The parts of the segment, at fixed offsets:
//
//   header            one line, written by the member that makes the segment, before any other sees it
//   abort line        the cause of an abort; the one line that several members may write, once
//   per member        a presence line, a timeout record, a record of a cause outside the segment and a record of its
//                     pairs, each written by that member alone
//   per member        two flags, for even and odd sequences, written by that member alone: a line with the word and a
//                     few bytes of payload, and a line that others read only if the calls differ
//   per member        two lines with the words that a leader publishes if the members synchronize in groups
//   per member        two staging slots, for even and odd sequences, written by that member alone
//   per member        a part of the shared heap, allocated by that member alone, written by all ranks in collectives
//   per pair          a segment of two members for what they send to each other; nothing is written there before that
//   duplicate         a segment of the same members for calls of named tensors, which they make beside others; nothing
//                     is written there before that
//   per member        a ring of events (contract/event_ring.h), written by that member alone; others read it when a
//                     timeline ends
//
// No two members write the same cache line, except when the group is aborted, when a member leaves, and before one
// sleeps: see shm/flag_protocol.h. Pages of staging and heap cost no memory until they are used.

/// x86 prefetches adjacent lines in pairs, but a flag line has 64 bytes, the size of a cache line.
inline constexpr std::size_t kLineBytes = 64;

using SharedWord = std::atomic<std::uint32_t>;
static_assert(SharedWord::is_always_lock_free && std::atomic<std::uint64_t>::is_always_lock_free,
              "words in shared memory must not hide a lock");
static_assert(sizeof(SharedWord) == 4, "a futex is 32 bits");

/// What a member publishes in one exchange. The word is stored last and read first; the rest does not change until
/// the exchange after the next.
struct alignas(kLineBytes) FlagLine {
  static constexpr std::size_t kPayloadBytes = 48;
  static constexpr int kChunkClasses = 10;
  static constexpr int kSwappableClasses = 3;
  static constexpr int kWorkBits = 31 - kChunkClasses - kSwappableClasses;
  /// In one word, which is stored as a whole: to change a part would wait for the line, which others have read.
  struct Notes {
    std::uint32_t uses_heap : 1;  ///< the member has allocated memory of the shared heap
    /// Of the first member: the classes of chunks that all stage with streaming stores (shm/store_choice.h).
    std::uint32_t streamed_classes : kChunkClasses;
    /// Of the first member: the classes of chunks that two members stage in turns, and not in swapped slots.
    std::uint32_t turning_classes : kSwappableClasses;
    /// The work of this member in the sample that ended before this exchange, in ticks of its clock: packed_work() of
    /// shm/store_choice.h. 0: none was measured.
    std::uint32_t work : kWorkBits;
  };
  SharedWord word;
  Notes notes;
  std::uint64_t fingerprint;
  /// Replaces the staging slot in calls with chunks of at most this size: it is in the line that is read anyway.
  std::array<std::byte, kPayloadBytes> payload;
};
static_assert(sizeof(FlagLine) == kLineBytes);

/// The member's complete call.
struct alignas(kLineBytes) CallLine {
  Call call;
};
static_assert(sizeof(CallLine) == kLineBytes);

/// A word that a leader publishes for its group: see shm/exchange_groups.h. The words of one leader are in separate
/// lines, because different members read them.
struct alignas(kLineBytes) GroupLine {
  SharedWord word;
};
static_assert(sizeof(GroupLine) == kLineBytes);

enum class Presence : std::uint32_t { kJoined = 1, kLeft = 2 };

struct alignas(kLineBytes) PresenceLine {
  std::atomic<Presence> presence;
  std::atomic<std::uint32_t> waits_for_other_host;  ///< 1: this member sleeps until another host sends data
  /// This member's index minus that of its group's leader, which is the group's first; 0: it leads. Written before
  /// the others see the segment.
  std::uint32_t behind_leader;
  SharedWord ping;  ///< for round trips between the first member and this one (shm/store_choice.h)
};

/// The members with which this one has begun to exchange in the pair's segment: one bit per member.
struct alignas(kLineBytes) PairsRecord {
  std::array<std::atomic<std::uint64_t>, kMaxMembers / 64> begun;
};

/// How other members, and other threads of its own process, wake a member that sleeps between calls of named tensors.
struct alignas(kLineBytes) DoorbellLine {
  SharedWord word;         ///< changes when there may be something to do
  SharedWord is_sleeping;  ///< 1: the member may sleep on the word
  /// The number of the last call in which another member has wanted to agree.
  SharedWord wanted_call;
};

/// Why this member gave up waiting. Written before the abort word names the member, and only once.
struct alignas(kLineBytes) TimeoutRecord {
  double seconds;
  Call call;
  std::array<std::uint64_t, kMaxMembers / 64> missing;  ///< one bit per member that had not arrived
  std::uint32_t awaits_another_host;                    ///< 1: it waited for the rank below instead
  std::int32_t awaited_rank;
  std::int32_t awaited_pid;
  HostField awaited_host;
};

/// A cause that this member reports, usually an event on another host. Written before the abort word names the
/// member, and only once.
struct alignas(kLineBytes) NoticeRecord {
  AbortNotice notice;
  std::atomic<std::uint32_t> is_taken;  ///< 1: one of the member's threads has begun to write
};

struct alignas(kLineBytes) AbortLine {
  std::atomic<std::uint64_t> cause;  ///< 0 = none; see shm/abort.h
  SharedWord any_left;               ///< not 0: some member has left
};

struct alignas(kLineBytes) SegmentHeader {
  std::uint64_t magic;
  std::uint32_t layout_version;
  std::uint32_t members;
  std::uint64_t slot_bytes;
  std::uint64_t heap_bytes;
  std::uint64_t pair_slot_bytes;
  std::uint32_t first_sequence;
  std::uint32_t has_duplicate;
  std::uint32_t event_capacity;
};

/// A view of the memory; owns nothing.
class Segment {
 public:
  /// An empty view.
  Segment() = default;
  /// The bytes of a segment for this number of members.
  static std::size_t bytes_for(int members, const SegmentConfig& config);
  /// Lays out fresh, zeroed memory of bytes_for() bytes.
  static Segment create(std::span<std::byte> memory, int members, const SegmentConfig& config);
  /// Views memory that another member laid out; an error if its header is invalid.
  static Result<Segment> open(std::span<std::byte> memory);

  int size() const { return members_; }
  std::size_t slot_bytes() const { return slot_bytes_; }
  std::uint32_t first_sequence() const { return header().first_sequence; }

  AbortLine& abort_line() const { return at<AbortLine>(sizeof(SegmentHeader)); }
  /// The groups in which the members synchronize: for each member its leader. Each member leads itself until this is
  /// called, which is before another member sees the segment.
  void set_leaders(std::span<const int> leader_of) const;
  std::vector<int> leaders() const;

  PresenceLine& presence(int index) const { return at<PresenceLine>(member_offset(index)); }
  TimeoutRecord& timeout_record(int index) const {
    return at<TimeoutRecord>(member_offset(index) + sizeof(PresenceLine));
  }
  NoticeRecord& notice_record(int index) const {
    return at<NoticeRecord>(member_offset(index) + sizeof(PresenceLine) + sizeof(TimeoutRecord));
  }
  PairsRecord& pairs_record(int index) const {
    return at<PairsRecord>(member_offset(index) + sizeof(PresenceLine) + sizeof(TimeoutRecord) +
                           sizeof(NoticeRecord));
  }
  DoorbellLine& doorbell(int index) const {
    return at<DoorbellLine>(member_offset(index) + sizeof(PresenceLine) + sizeof(TimeoutRecord) +
                            sizeof(NoticeRecord) + sizeof(PairsRecord));
  }
  bool has_duplicate() const { return has_duplicate_; }
  /// The second segment of the members.
  Segment duplicate() const;
  bool has_pairs() const { return pair_slot_bytes_ > 0; }
  /// The segment of two members: the one with the lower index becomes member 0, the other one member 1.
  Segment pair(int a, int b) const;
  /// The line of one member for the exchanges of the given parity (0 or 1).
  FlagLine& flag(int index, unsigned parity) const {
    return at<FlagLine>(flags_offset() + (index * 2 + parity) * sizeof(FlagLine));
  }
  CallLine& call(int index, unsigned parity) const {
    return at<CallLine>(calls_offset() + (index * 2 + parity) * sizeof(CallLine));
  }
  /// Published when the member's group has arrived, and when the group may go on.
  GroupLine& gathered(int index) const {
    return at<GroupLine>(group_lines_offset() + index * 2 * sizeof(GroupLine));
  }
  GroupLine& released(int index) const {
    return at<GroupLine>(group_lines_offset() + (index * 2 + 1) * sizeof(GroupLine));
  }
  /// The parts of all members, one after the other; empty if there is no heap.
  std::span<std::byte> heap() const { return {base_ + heap_offset(), members_ * heap_bytes_}; }
  std::span<std::byte> heap_part(int index) const { return heap().subspan(index * heap_bytes_, heap_bytes_); }
  /// A member's ring of events and the memory that it lies in; empty if there are no rings.
  std::span<std::byte> ring(int index) const {
    return {base_ + rings_offset() + index * ring_bytes(), ring_bytes()};
  }
  std::byte* slot(int index, unsigned parity) const {
    return base_ + slots_offset() + (index * 2 + parity) * slot_bytes_;
  }

 private:
  static constexpr std::size_t kMemberBytes = sizeof(PresenceLine) + sizeof(TimeoutRecord) +
                                              sizeof(NoticeRecord) + sizeof(PairsRecord) +
                                              sizeof(DoorbellLine);

  Segment(std::byte* base, int members, const SegmentConfig& config)
      : base_(base),
        members_(members),
        slot_bytes_(config.slot_bytes),
        heap_bytes_(config.heap_bytes),
        pair_slot_bytes_(config.pair_slot_bytes),
        has_duplicate_(config.has_duplicate),
        event_capacity_(config.event_capacity) {}
  /// Without heap, pairs and duplicate.
  static Segment plain(std::byte* base, int members, std::size_t slot_bytes);

  template <class T>
  T& at(std::size_t offset) const {
    return *reinterpret_cast<T*>(base_ + offset);
  }
  SegmentHeader& header() const { return at<SegmentHeader>(0); }
  std::size_t member_offset(int index) const {
    return sizeof(SegmentHeader) + sizeof(AbortLine) + index * kMemberBytes;
  }
  std::size_t flags_offset() const { return member_offset(members_); }
  std::size_t calls_offset() const { return flags_offset() + members_ * 2 * sizeof(FlagLine); }
  std::size_t group_lines_offset() const { return calls_offset() + members_ * 2 * sizeof(CallLine); }
  std::size_t slots_offset() const;
  std::size_t heap_offset() const;
  std::size_t pairs_offset() const;
  /// The bytes of one pair's segment.
  std::size_t pair_bytes() const;
  std::size_t duplicate_offset() const;
  std::size_t duplicate_bytes() const;
  std::size_t rings_offset() const;
  std::size_t ring_bytes() const;

  std::byte* base_ = nullptr;
  int members_ = 0;
  std::size_t slot_bytes_ = 0;
  std::size_t heap_bytes_ = 0;
  std::size_t pair_slot_bytes_ = 0;
  bool has_duplicate_ = false;
  std::uint32_t event_capacity_ = 0;
};

}  // namespace ddl::runtime
