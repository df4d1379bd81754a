#include "runtime/src/transport/sealed_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace ddl::runtime {
namespace {

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

}  // namespace

Result<UniqueFd> make_sealed_memory(std::size_t size) {
  UniqueFd fd(::memfd_create("ddl", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd) return fail_errno("memfd_create");
  if (::ftruncate(fd.get(), static_cast<off_t>(size)) != 0) {
    return fail_errno("ftruncate of a memfd to " + std::to_string(size) + " bytes");
  }
  if (::fcntl(fd.get(), F_ADD_SEALS, kSeals) != 0) return fail_errno("fcntl F_ADD_SEALS");
  return fd;
}

Result<std::size_t> check_sealed_memory(int fd) {
  const int seals = ::fcntl(fd, F_GET_SEALS);
  if (seals < 0) return fail_errno("fcntl F_GET_SEALS");
  if ((seals & kSeals) != kSeals)
    return fail(ErrorCode::kProtocol, "shared memory arrived without its seals");
  struct stat info {};
  if (::fstat(fd, &info) != 0) return fail_errno("fstat of shared memory");
  return static_cast<std::size_t>(info.st_size);
}

}  // namespace ddl::runtime
