// What a rank shows its launcher: memory that both share. So it is whole however the rank ends, and reading it needs
// no library, no round trip, and no rank that still answers. The launcher checks all that it reads: a rank can write
// anything.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace ddl::contract {

/// The kinds of libddl's calls, by the numbers that CallWord has for them.
inline constexpr std::array kCallNames = {
    "nothing",
    "allreduce",
    "reduce",
    "reduce_scatter",
    "scan",
    "broadcast",
    "allgather",
    "allgatherv",
    "gather",
    "scatter",
    "alltoall",
    "alltoallv",
    "transfer",
    "barrier",
    "making process sets",
    "agreeing on named tensors",
    "timeline",
};

/// The last call that a rank has begun in one stream of calls, as one word, so that a reader sees all of it or
/// nothing. 0: none yet.
struct CallWord {
  static constexpr std::uint64_t kInside = 1;  ///< the rank has not returned from it

  static constexpr std::uint64_t of(std::uint64_t number, std::uint8_t kind) {
    return number << 16 | static_cast<std::uint64_t>(kind) << 8;
  }
  static constexpr std::uint64_t number(std::uint64_t word) { return word >> 16; }
  static constexpr std::uint8_t kind(std::uint64_t word) { return static_cast<std::uint8_t>(word >> 8); }
  static constexpr bool is_inside(std::uint64_t word) { return (word & kInside) != 0; }
};

/// A process set that the rank is a member of.
struct SetRecord {
  /// Upper half: the same number on all members; lower half: 1 + the number by which the program knows the set. 0: no
  /// set.
  std::atomic<std::uint64_t> name{0};
  std::atomic<std::uint64_t> call{0};        ///< CallWord of its ordered calls
  std::atomic<std::uint64_t> named_call{0};  ///< CallWord of the calls for its named tensors
  std::atomic<std::int32_t> peer{0};         ///< of a transfer: 1 + the other rank of the job; 0: none
  std::atomic<std::uint32_t> has_joined{0};  ///< 1: in ddl_join
  std::atomic<std::uint32_t> waiters{0};     ///< threads that wait for named tensors, or in ddl_join
};
static_assert(sizeof(SetRecord) == 40);

/// A named tensor that the rank has submitted and that is not complete.
struct TensorRecord {
  static constexpr std::size_t kNameBytes = 48;

  /// Upper half: greater with every tensor; lower half: 1 + the index of its SetRecord, or 0: no tensor. Written last,
  /// and changed before anything else is.
  std::atomic<std::uint64_t> state{0};
  std::uint64_t digest = 0;             ///< of the whole name
  std::array<char, kNameBytes> name{};  ///< its beginning; zeros follow
};
static_assert(sizeof(TensorRecord) == 64);

/// All calls of one kind that the rank has made, in all of its programs and process sets. Added up by libddl every few
/// milliseconds while calls are made, so those of the last moments before a crash are missing.
struct CallTotals {
  std::atomic<std::uint64_t> calls{0};        ///< that have ended, also with an error
  std::atomic<std::uint64_t> bytes{0};        ///< of one rank: the number of elements times their size
  std::atomic<std::uint64_t> nanoseconds{0};  ///< inside of them
  /// Of these, asleep until other ranks had made the call, too. Added at once.
  std::atomic<std::uint64_t> wait_nanoseconds{0};
};

/// A rank for which this one has slept in calls, and how long.
struct AwaitedTotal {
  std::atomic<std::int32_t> rank{0};  ///< 1 + the rank of the job; 0: none
  std::uint32_t reserved = 0;
  std::atomic<std::uint64_t> nanoseconds{0};
};

/// A host that the launcher has lost, for the ranks of the others: they wait for ranks that no longer answer. Written
/// by the launcher.
struct LostHost {
  std::atomic<std::int32_t> rank{0};  ///< 1 + a rank that ran there; written last. 0: none is lost
  std::int32_t pid = 0;               ///< of that rank; 0: unknown
  std::array<char, 64> name{};        ///< zeros follow, as in text
  std::array<char, 424> text{};       ///< which ranks ran there, and why it counts as lost
};
static_assert(sizeof(LostHost) == 496);

/// env::kRankRecord, "FD:OFFSET:BYTES:DOORBELL", says where it lies in an inherited memfd that is sealed against
/// another size, and how much of it belongs to this rank: the record, and from kBytes on an EventRing. The launcher
/// writes the first field, lost_host and pending_change into memory of zeros, and libddl the others. DOORBELL is an
/// inherited eventfd, which is readable once lost_host is written.
struct RankRecord {
  static constexpr std::uint32_t kMagic = 0x444C'5836;
  static constexpr std::size_t kBytes = std::size_t{64} << 10;  ///< a multiple of every page size
  static constexpr std::size_t kSets = 50;
  static constexpr std::size_t kTensors = 932;
  static constexpr std::size_t kAwaited = 128;
  enum class Phase : std::uint32_t {
    kNone = 0,  ///< libddl has not been initialised
    kJoining,
    kJoined,
    kLeft,
  };

  std::uint32_t magic = kMagic;
  std::atomic<std::int32_t> gone{
      0};  ///< 1 + the rank that libddl's errors name: it died, left, or gave up first
  std::atomic<Phase> phase{Phase::kNone};
  std::atomic<std::int32_t> pid{0};
  std::atomic<std::uint64_t> pid_namespace{0};   ///< the inode of its pid namespace
  std::atomic<std::uint32_t> tensor_slots{0};    ///< of tensors: no later one has ever been used
  std::atomic<std::uint32_t> hidden_tensors{0};  ///< that are not in tensors, for lack of room
  std::array<SetRecord, kSets> sets;
  std::array<TensorRecord, kTensors> tensors;
  /// When phase changed, in nanoseconds of CLOCK_MONOTONIC; written before it. 0: by a libddl that does not write it.
  std::atomic<std::int64_t> phase_since{0};
  /// The process that is the rank from its ddl_init on until it has left, or ended: the lower halves of the inode of its
  /// pid namespace and of its pid. 0: none. Processes that the rank has started share the record, and look here first.
  std::atomic<std::uint64_t> owner{0};
  LostHost lost_host;
  /// How often ddl_init has begun, in all programs of the rank; written before phase.
  std::atomic<std::uint32_t> inits{0};
  /// Of an elastic job: a JobChange. Written by the launcher.
  std::atomic<std::uint32_t> pending_change{0};
  std::array<CallTotals, kCallNames.size()> totals{};        ///< by the kinds of calls, of those in order
  std::array<CallTotals, kCallNames.size()> named_totals{};  ///< the same, of those for named tensors
  /// How long the program has waited for named tensors. Its own thread may have executed them, or libddl's.
  std::atomic<std::uint64_t> tensor_wait_nanoseconds{0};
  /// The first places are used. If there are more ranks, the shortest waits are given up.
  std::array<AwaitedTotal, kAwaited> awaited{};
};
static_assert(sizeof(RankRecord) <= RankRecord::kBytes);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free, "a lock would not work between processes");

}  // namespace ddl::contract
