// What a rank has done, event by event: a ring in memory that another process reads while the rank runs, hangs, or has
// died. Under ddlrun it lies behind the rank's RankRecord (contract/rank_record.h), and the agent reads it. The reader
// checks all that it reads: a rank can write anything. The rank checks what limits its own writes.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace ddl::contract {

/// One event: an interval, or a moment. Plain data, in two cache lines; events without a name use the first one alone.
/// In the ring it is 16 words of 64 bits, written with release and read with acquire semantics: number becomes 0 before
/// the others change, and is written last.
struct Event {
  enum class Kind : std::uint8_t {
    kNone = 0,
    kCall,       ///< an ordered call
    kTensor,     ///< a named tensor: begins when it is submitted, ends when it is complete
    kAgreement,  ///< the ranks agree on named tensors
    kBatch,      ///< named tensors that are processed together
    kPacking,    ///< tensors are copied into one buffer
    kUnpacking,  ///< results are copied out of it
    kExchange,   ///< a call moves data between hosts
    kWait,       ///< a thread waits for a named tensor, or in ddl_join
    kRange,      ///< of the program: a ddl::Range, or ddl_range_begin() and ddl_range_end()
    kMark,       ///< of the program: ddl_mark()
    kStep,       ///< a step of named tensors has ended
  };
  static constexpr Kind kLastKind = Kind::kStep;
  static constexpr std::size_t kNameBytes = 60;
  /// Whether name and tensors are used. In the ring they are left as they were where they are not.
  static constexpr bool has_name(Kind kind) {
    return kind == Kind::kTensor || kind == Kind::kBatch || kind == Kind::kWait || kind == Kind::kRange ||
           kind == Kind::kMark;
  }
  /// end of an interval that has not ended.
  static constexpr std::int64_t kOpen = 0;

  std::uint64_t number = 0;  ///< of the event, from 1; 0: none, or it is being written
  std::int64_t begin = 0;    ///< in nanoseconds of the rank's clock (EventRing)
  std::int64_t started = 0;  ///< of a tensor: when the call began that carries it out; 0: it has not begun
  std::int64_t end = kOpen;  ///< that of a moment is its begin
  std::uint64_t bytes = 0;   ///< of one rank
  std::uint64_t call = 0;    ///< its number in the stream of calls
  std::uint32_t generation = 0;  ///< of the process set (SetRecord)
  std::uint32_t thread = 0;      ///< the kernel's number of the thread
  Kind kind = Kind::kNone;
  std::uint8_t call_kind = 0;  ///< an index of kCallNames
  std::uint8_t op = 0;         ///< a ddl_op
  std::uint8_t algorithm = 0;  ///< an index of kAlgorithmNames
  std::uint16_t dtype = 0;     ///< a ddl_dtype
  std::int16_t status = 0;     ///< a ddl_status, of what has ended

  std::array<char, kNameBytes>
      name{};                 ///< its beginning, of a tensor, range or mark; of a batch, its first tensor
  std::uint32_t tensors = 0;  ///< of a batch

  bool operator==(const Event&) const = default;
};
static_assert(sizeof(Event) == 128);

/// The algorithms of calls, by the numbers that Event::algorithm has for them.
inline constexpr std::array kAlgorithmNames = {"",     "whole", "slices", "tree", "units", "halving",
                                               "ring", "heap",  "blocks", "mpi",  "nccl",  "ipc"};

/// Clocks of different hosts differ. A rank that is to be compared with others measures by how much: another rank's
/// clock minus this one's, at one moment of this one's clock.
struct ClockSample {
  std::int64_t at = 0;
  std::int64_t offset = 0;
  std::int64_t bound =
      0;  ///< the offset is at most so wrong: half of the round trip by which it was measured
  bool operator==(const ClockSample&) const = default;
};

struct ClockRecord {
  static constexpr std::size_t kSamples = 64;
  std::atomic<std::uint32_t> version{0};  ///< odd while the other fields change
  std::atomic<std::int32_t> peer{0};      ///< 1 + the rank of the job whose clock is compared; 0: none
  std::atomic<std::uint32_t> count{0};    ///< of samples
  std::uint32_t reserved = 0;
  /// In the order of at, three words each: that of ClockSample. When all are used, every second one is dropped.
  std::array<std::atomic<std::int64_t>, 3 * kSamples> samples{};
};

/// The head of a ring; its events follow at kHeadBytes. The rank's clock is CLOCK_MONOTONIC.
struct EventRing {
  static constexpr std::uint32_t kMagic = 0x444C'4532;
  static constexpr std::size_t kHeadBytes = 4096;
  static constexpr std::uint32_t kMaxCapacity = 1U << 17;
  /// What is kept always: enough to say what a rank did before it died.
  static constexpr std::uint32_t kUsuallyKept = 256;

  static constexpr std::size_t bytes_for(std::uint32_t capacity) {
    return kHeadBytes + std::size_t{capacity} * sizeof(Event);
  }

  // Written by the process that makes the ring, into memory that is filled with zeros.
  std::uint32_t magic = kMagic;
  std::uint32_t capacity = 0;  ///< the events that there is room for: a power of two
  /// The number of latest events that are kept: a power of two, at most capacity. Event n is in place (n - 1) mod kept.
  /// It may rise while the rank runs.
  std::atomic<std::uint32_t> kept{0};
  /// 1: a timeline is recorded, and times are exact. 0: times are those of the last tick of the kernel, 1 to 10 ms ago,
  /// which are read faster.
  std::atomic<std::uint32_t> is_exact{0};

  // Written by the rank.
  alignas(64) std::atomic<std::uint64_t> count{0};                ///< of events ever
  alignas(64) std::atomic<std::uint64_t> steps{0};                ///< of named tensors that have ended
  std::atomic<std::int64_t> first_step_end{0}, last_step_end{0};  ///< of these; 0: there was none
  ClockRecord clock;
};
static_assert(sizeof(EventRing) <= EventRing::kHeadBytes);

/// The size of a timeline's file before it is compressed, unless the user chooses another one, and the greatest choice.
inline constexpr std::uint64_t kUsualTimelineBytes = std::uint64_t{128} << 20;
inline constexpr int kMaxTimelineMegabytes = 16 << 10;

}  // namespace ddl::contract
