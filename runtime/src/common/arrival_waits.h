// For whom a rank waits in calls, and how long: what the report of a job says of ranks that make the others wait.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "runtime/src/common/call.h"
#include "runtime/src/common/rank_record.h"

namespace ddl::runtime {

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
