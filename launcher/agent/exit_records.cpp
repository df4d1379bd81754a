#include "launcher/agent/exit_records.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <vector>

#include "contract/rank_process.h"

namespace ddl::launcher {

using contract::ExitRecord;

Result<ExitRecords> ExitRecords::create(std::size_t local_ranks) {
  UniqueFd fd(::memfd_create("ddl-exit-records", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd) return fail_errno("memfd_create");
  const std::vector<ExitRecord> empty(local_ranks);
  DDL_TRY(
      write_all(fd.get(), reinterpret_cast<const char*>(empty.data()), empty.size() * sizeof(ExitRecord)));
  if (::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
    return fail_errno("fcntl F_ADD_SEALS");
  return ExitRecords(std::move(fd));
}

std::string ExitRecords::place_of(std::size_t local_rank) {
  return std::to_string(contract::kExitRecordFd) + ":" + std::to_string(local_rank * sizeof(ExitRecord));
}

int ExitRecords::gone_rank(std::size_t local_rank) const {
  ExitRecord record;
  const auto offset = static_cast<off_t>(local_rank * sizeof record);
  if (::pread(fd_.get(), &record, sizeof record, offset) != sizeof record) return ExitRecord::kNone;
  return record.magic == ExitRecord::kMagic ? record.gone_rank : ExitRecord::kNone;
}

}  // namespace ddl::launcher
