// This rank's record for its launcher (contract/rank_process.h).
#pragma once

#include <cstdint>

namespace ddl::runtime {

/// DDL_EXIT_RECORD: where the record lies.
struct ExitRecordLocation {
  int fd = 0;
  std::int64_t offset = 0;
};

/// Records that this rank has lost gone_rank. Does nothing unless the descriptor is still the one that the launcher
/// gave: a program may have closed it and opened a file of its own under its number.
void leave_exit_record(const ExitRecordLocation& location, int gone_rank);

}  // namespace ddl::runtime
