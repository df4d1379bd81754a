#include "net/job_key.h"

#include <fcntl.h>
#include <openssl/crypto.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <utility>

#include "base/bytes.h"

namespace ddl::net {
namespace {

constexpr int kSeals = F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW;

std::size_t page_bytes() { return static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)); }

}  // namespace

void wipe(std::span<std::byte> memory) { ::explicit_bzero(memory.data(), memory.size()); }

bool is_same_secret(std::span<const std::byte> one, std::span<const std::byte> other) {
  return one.size() == other.size() && ::CRYPTO_memcmp(one.data(), other.data(), one.size()) == 0;
}

Result<JobKey> JobKey::allocate() {
  void* page = ::mmap(nullptr, page_bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return fail_errno("mmap");
  JobKey key(static_cast<std::byte*>(page));
  if (::madvise(page, page_bytes(), MADV_DONTDUMP) != 0) return fail_errno("madvise MADV_DONTDUMP");
  if (::madvise(page, page_bytes(), MADV_WIPEONFORK) != 0) return fail_errno("madvise MADV_WIPEONFORK");
  // Not into swap either, if RLIMIT_MEMLOCK allows.
  (void)::mlock(page, page_bytes());
  return key;
}

Result<JobKey> JobKey::random() {
  DDL_ASSIGN(key, allocate());
  DDL_TRY(fill_random({key.page_, kJobKeyBytes}));
  return key;
}

Result<JobKey> JobKey::from_bytes(std::span<const std::byte> bytes) {
  if (bytes.size() != kJobKeyBytes) {
    return fail(ErrorCode::kInvalidArgument, "a job's key has " + std::to_string(kJobKeyBytes) +
                                                 " bytes, not " + std::to_string(bytes.size()));
  }
  DDL_ASSIGN(key, allocate());
  std::memcpy(key.page_, bytes.data(), bytes.size());
  return key;
}

Result<JobKey> JobKey::from_hex(std::string_view text) {
  const auto not_one = [] {
    return fail(ErrorCode::kInvalidArgument,
                "a job's key is written as " + std::to_string(2 * kJobKeyBytes) + " hexadecimal digits");
  };
  DDL_ASSIGN(key, allocate());
  if (!ddl::from_hex(text, {key.page_, kJobKeyBytes})) return not_one();
  return key;
}

Result<JobKey> JobKey::from_memfd(int fd) {
  const auto not_one = [fd](const std::string& why) {
    return fail(ErrorCode::kInvalidArgument,
                "descriptor " + std::to_string(fd) + " does not hold a job's key: " + why);
  };
  struct stat info {};
  if (::fstat(fd, &info) != 0) return not_one("it is not open");
  // Only memfds have seals. Without this check any file could be taken for the key.
  const int seals = ::fcntl(fd, F_GET_SEALS);
  if (seals < 0 || (seals & kSeals) != kSeals) return not_one("it is not sealed memory");
  if (info.st_size != static_cast<off_t>(kJobKeyBytes))
    return not_one("it has " + std::to_string(info.st_size) + " bytes");
  if (::fcntl(fd, F_SETFD, FD_CLOEXEC) != 0) return fail_errno("fcntl F_SETFD");
  DDL_ASSIGN(key, allocate());
  // From the beginning: other processes read it through the same open file description.
  if (retry_eintr([&] { return ::pread(fd, key.page_, kJobKeyBytes, 0); }) !=
      static_cast<ssize_t>(kJobKeyBytes)) {
    return fail_errno("reading the job's key");
  }
  return key;
}

Result<UniqueFd> JobKey::to_memfd() const {
  UniqueFd fd(::memfd_create("ddl-job-key", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd) return fail_errno("memfd_create");
  DDL_TRY(write_all(fd.get(), page_, kJobKeyBytes));
  if (::fcntl(fd.get(), F_ADD_SEALS, kSeals | F_SEAL_SEAL) != 0) return fail_errno("fcntl F_ADD_SEALS");
  return fd;
}

std::string JobKey::to_hex() const { return ddl::to_hex(bytes()); }

JobKey::JobKey(JobKey&& other) noexcept : page_(std::exchange(other.page_, nullptr)) {}

JobKey& JobKey::operator=(JobKey&& other) noexcept {
  std::swap(page_, other.page_);
  return *this;
}

JobKey::~JobKey() {
  if (page_ == nullptr) return;
  wipe({page_, kJobKeyBytes});
  ::munmap(page_, page_bytes());
}

}  // namespace ddl::net
