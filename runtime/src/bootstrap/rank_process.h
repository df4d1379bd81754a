// Whether this process may join the job as the rank whose variables it has: processes that a rank has started inherit
// them, but only one process can be the rank, by one libddl. No launcher refuses the others: they would wait for ever.
#pragma once

#include <optional>
#include <utility>

#include "base/environment.h"
#include "base/error.h"
#include "base/fd.h"
#include "runtime/src/common/settings.h"

namespace ddl::runtime {

/// The thread of a process that belongs to a set of several ranks.
inline constexpr char kMemberThread[] = "ddl-watcher";

/// From ddl_init on. The destructor gives up the claim unless the rank has joined.
class RankClaim {
 public:
  /// Error kInvalidArgument: this process has loaded two libddl, or another process is the rank. That is known where
  /// ddlrun has given the rank a record, or if the other process is above this one and has joined; a shell above it is
  /// none. settings.rank_record becomes that of this claim: the inherited descriptor may be closed, and a process
  /// without a launcher's promise has no record. Sets settings.is_successor.
  static Result<RankClaim> make(Settings& settings, const Environment& environment);
  ~RankClaim();
  RankClaim(RankClaim&& other) noexcept
      : fd_(std::move(other.fd_)), record_(std::exchange(other.record_, std::nullopt)) {}
  RankClaim& operator=(RankClaim&&) = delete;

  void has_joined() { record_.reset(); }

 private:
  RankClaim() = default;
  UniqueFd fd_;
  std::optional<RankRecordLocation> record_;
};

}  // namespace ddl::runtime
