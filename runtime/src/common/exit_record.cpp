#include "runtime/src/common/exit_record.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstddef>

#include "contract/rank_process.h"

namespace ddl::runtime {

using contract::ExitRecord;

void leave_exit_record(const ExitRecordLocation& location, int gone_rank) {
  // Only memfds have seals, and a memfd of the program is unlikely to have exactly these and this number here.
  constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
  if (::fcntl(location.fd, F_GET_SEALS) != kSeals) return;
  ExitRecord record;
  if (::pread(location.fd, &record, sizeof record, location.offset) != sizeof record) return;
  if (record.magic != ExitRecord::kMagic) return;
  (void)!::pwrite(location.fd, &gone_rank, sizeof gone_rank,
                  location.offset + static_cast<off_t>(offsetof(ExitRecord, gone_rank)));
}

}  // namespace ddl::runtime
