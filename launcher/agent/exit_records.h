// What the ranks of a node leave behind when they end (contract/rank_process.h).
#pragma once

#include <string>

#include "base/error.h"
#include "base/fd.h"

namespace ddl::launcher {

/// One record a local rank, all in one memfd that the ranks inherit.
class ExitRecords {
 public:
  /// Error: the kernel gives no such memory; ranks run without.
  static Result<ExitRecords> create(std::size_t local_ranks);

  /// For the ranks to inherit as contract::kExitRecordFd.
  int fd() const { return fd_.get(); }
  /// The value of contract::env::kExitRecord.
  static std::string place_of(std::size_t local_rank);
  /// Whom the rank has seen go, by what it wrote: any number. contract::ExitRecord::kNone: nobody.
  int gone_rank(std::size_t local_rank) const;

 private:
  explicit ExitRecords(UniqueFd fd) : fd_(std::move(fd)) {}

  UniqueFd fd_;
};

}  // namespace ddl::launcher
