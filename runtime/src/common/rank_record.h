// What this rank shows its launcher while it runs (contract/rank_record.h): its calls, its open tensors, and for whom it
// waits.
//
// Showing costs a few stores into memory that nobody else writes. The launcher looks rarely, and measures the time.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "contract/elastic.h"
#include "contract/event_ring.h"
#include "contract/rank_record.h"
#include "runtime/src/common/call.h"
#include "runtime/src/common/failure.h"

namespace ddl::runtime {

/// DDL_RANK_RECORD: where the record lies.
struct RankRecordLocation {
  int fd = 0;
  std::int64_t offset = 0;
  std::int64_t bytes = 0;  ///< of the record and the ring behind it
  int doorbell = -1;       ///< -1: none
};

/// How the program makes a call.
enum class CallTier : std::uint8_t {
  kOrdered,  ///< by itself, in the same order as the other ranks
  kNamed,    ///< by named tensors, which libddl executes
};

/// All functions may be called from any thread. Not in a forked child, which shares the memory with its parent.
class RankRecord {
 public:
  /// Null unless the descriptor is still the one that the launcher gave: a program may have closed it and opened a
  /// file of its own under its number.
  static std::shared_ptr<RankRecord> open(const RankRecordLocation& location);
  struct Claim {
    pid_t holder = 0;  ///< the other process that the record is of; 0: it is this one, or there is no record
    bool is_successor =
        false;  ///< the rank has been in a libddl before: of a process that has ended, or of this one
  };
  /// Makes this process the one that the record is of, until it leaves or calls disown(), unless another one is that.
  static Claim claim(const RankRecordLocation& location);
  static void disown(const RankRecordLocation& location);
  /// Whether the descriptor is of a launcher's memory: only memfds have seals, and a memfd of the program is unlikely to
  /// have exactly these.
  static bool is_record(int fd);
  /// This rank has left.
  ~RankRecord();
  RankRecord(const RankRecord&) = delete;
  RankRecord& operator=(const RankRecord&) = delete;

  /// The memory of the ring of events; null if there is none.
  contract::EventRing* ring() const;
  /// Of that ring, behind its head.
  std::size_t ring_bytes() const {
    return bytes_ - contract::RankRecord::kBytes - contract::EventRing::kHeadBytes;
  }

  void has_joined() { show(contract::RankRecord::Phase::kJoined); }
  /// Readable once the launcher has lost a host; -1: it does not say so. Open while this lives.
  int doorbell() const { return doorbell_.get(); }
  /// Why the job cannot go on, if the launcher has lost a host.
  std::optional<AbortNotice> lost_host() const;

  /// Of an elastic job: what all ranks are to come together for.
  contract::JobChange pending_change() const {
    return static_cast<contract::JobChange>(record_.pending_change.load(std::memory_order_relaxed));
  }

  /// This rank has lost that one; if it is itself, it gave up.
  void has_lost(int rank) { record_.gone = rank + 1; }

  /// These calls of one kind have ended.
  void add_calls(CallTier tier, CallKind kind, std::uint64_t calls, std::uint64_t bytes,
                 std::uint64_t nanoseconds);
  /// This rank has slept in a call of this kind until that rank of the job had made it, too.
  void add_wait(CallTier tier, CallKind kind, int awaited, std::uint64_t nanoseconds);
  /// The program has waited for named tensors.
  void add_tensor_wait(std::uint64_t nanoseconds);

  /// A set that this rank is a member of. generation: the same number on all members. id: as the program knows it.
  /// Null if there is no room.
  contract::SetRecord* add_set(std::uint32_t generation, std::uint32_t id);
  void remove_set(contract::SetRecord* set);

  /// A tensor of the set has been submitted. Returns its place, or kNoPlace if there is no room.
  std::uint32_t add_tensor(const contract::SetRecord& set, std::string_view name);
  void remove_tensor(std::uint32_t place);
  static constexpr std::uint32_t kNoPlace = ~std::uint32_t{0};

 private:
  RankRecord(contract::RankRecord& record, std::size_t bytes, int doorbell);
  void show(contract::RankRecord::Phase phase);
  contract::CallTotals& totals(CallTier tier, CallKind kind);

  contract::RankRecord& record_;  ///< mapped, with what follows
  std::size_t bytes_;
  UniqueFd doorbell_;
  std::mutex mutex_;  ///< guards what follows, and which sets and tensors are used
  std::vector<std::uint32_t> free_places_;
  std::uint32_t version_ = 0;  ///< of the tensors
};

/// This rank is inside a call while this lives. word: of the stream of calls; null: there is no record.
class RecordedCall {
 public:
  RecordedCall(std::atomic<std::uint64_t>* word, CallKind kind, std::uint64_t number)
      : word_(word), value_(contract::CallWord::of(number, static_cast<std::uint8_t>(kind))) {
    if (word_ != nullptr) word_->store(value_ | contract::CallWord::kInside, std::memory_order_relaxed);
  }
  ~RecordedCall() {
    if (word_ != nullptr) word_->store(value_, std::memory_order_relaxed);
  }
  RecordedCall(const RecordedCall&) = delete;
  RecordedCall& operator=(const RecordedCall&) = delete;

 private:
  std::atomic<std::uint64_t>* word_;
  std::uint64_t value_;
};

/// Adds up the calls of one stream, and shows the sums now and then, so that a short call pays for a few additions only.
/// Used by the thread that makes the calls.
class CallTally {
 public:
  /// record: null if there is none.
  CallTally(std::shared_ptr<RankRecord> record, CallTier tier) : record_(std::move(record)), tier_(tier) {}

  /// A call has ended. begin, end: in nanoseconds, by the clock of events.
  void add(CallKind kind, std::uint64_t bytes, std::int64_t begin, std::int64_t end) {
    if (kind != kind_) {
      show();
      kind_ = kind;
    }
    ++calls_;
    bytes_ += bytes;
    nanoseconds_ += static_cast<std::uint64_t>(end - begin);
    if (end - shown_at_ < kPause) return;
    show();
    shown_at_ = end;
  }
  /// After the last call, too.
  void show() {
    if (record_ && calls_ > 0) record_->add_calls(tier_, kind_, calls_, bytes_, nanoseconds_);
    calls_ = bytes_ = nanoseconds_ = 0;
  }

 private:
  static constexpr std::int64_t kPause = 1'000'000;

  std::shared_ptr<RankRecord> record_;
  CallTier tier_;
  CallKind kind_{};
  std::uint64_t calls_ = 0, bytes_ = 0, nanoseconds_ = 0;  ///< of this kind, not shown yet
  std::int64_t shown_at_ = 0;
};

/// The sleeps of this rank in one stream of calls until other ranks had made the call, too. A wait that ends while it
/// spins is not counted and costs nothing: it is a few microseconds. Used by the thread that is inside a call.
class ArrivalWaits {
 public:
  /// record: null if there is none.
  ArrivalWaits(std::shared_ptr<RankRecord> record, CallTier tier) : record_(std::move(record)), tier_(tier) {}

  /// A call has begun.
  void begin() { last_ = kNobody; }
  /// This rank has slept in a call of this kind, until that rank of the job had made it, too.
  void add(CallKind kind, int awaited, std::int64_t nanoseconds) {
    last_ = awaited;
    if (record_) record_->add_wait(tier_, kind, awaited, static_cast<std::uint64_t>(nanoseconds));
  }
  /// The rank for which this one has slept last in this call, or kNobody. A rank of another host that waits for this one
  /// waits for that.
  int last() const { return last_; }
  static constexpr int kNobody = -1;

 private:
  std::shared_ptr<RankRecord> record_;
  CallTier tier_;
  int last_ = kNobody;
};

}  // namespace ddl::runtime
