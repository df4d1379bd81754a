#include "stand_ins/ipc.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <ctime>
#include <string>

namespace ddl::stand_ins {
namespace {

constexpr std::uint32_t kMemory = 0x6d656d01, kEvent = 0x65766501;

}  // namespace

int open_file_of(const IpcHandle& handle) {
  const std::string path = "/proc/" + std::to_string(handle.pid) + "/fd/" + std::to_string(handle.fd);
  return ::open(path.c_str(), O_RDWR | O_CLOEXEC);
}

IpcHandle handle_of(const GpuMemory& memory, const GpuMemory::Allocation& allocation, int gpu_of_host) {
  IpcHandle handle;
  handle.kind = kMemory;
  handle.pid = ::getpid();
  handle.fd = memory.file();
  handle.gpu = gpu_of_host;
  handle.offset = memory.offset_of(allocation);
  handle.bytes = allocation.bytes;
  return handle;
}

std::uintptr_t open_memory(GpuMemory& memory, const IpcHandle& handle, int gpu) {
  if (handle.kind != kMemory || handle.pid == ::getpid()) return 0;
  const int file = open_file_of(handle);
  if (file < 0) return 0;
  const auto opened = memory.open(file, handle.offset, handle.bytes, gpu);
  ::close(file);
  return opened;
}

std::shared_ptr<SharedRecords> SharedRecords::make() {
  const int fd = ::memfd_create("stand-in event", MFD_CLOEXEC);
  if (fd < 0 || ::ftruncate(fd, sizeof(Counts)) != 0) broken_rule("no memory for an event");
  void* const counts = ::mmap(nullptr, sizeof(Counts), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (counts == MAP_FAILED) broken_rule("no memory for an event");
  return std::shared_ptr<SharedRecords>(new SharedRecords(fd, static_cast<Counts*>(counts), -1));
}

std::shared_ptr<SharedRecords> SharedRecords::open(const IpcHandle& handle) {
  if (handle.kind != kEvent || handle.pid == ::getpid()) return nullptr;
  const int fd = open_file_of(handle);
  if (fd < 0) return nullptr;
  void* const counts = ::mmap(nullptr, sizeof(Counts), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  ::close(fd);
  if (counts == MAP_FAILED) return nullptr;
  const auto owner = static_cast<int>(::syscall(SYS_pidfd_open, handle.pid, 0));
  if (owner < 0) broken_rule("the process of an event has gone");
  return std::shared_ptr<SharedRecords>(new SharedRecords(-1, static_cast<Counts*>(counts), owner));
}

SharedRecords::~SharedRecords() {
  ::munmap(counts_, sizeof(Counts));
  if (fd_ >= 0) ::close(fd_);
  if (owner_ >= 0) ::close(owner_);
}

IpcHandle SharedRecords::handle() const {
  IpcHandle handle;
  handle.kind = kEvent;
  handle.pid = ::getpid();
  handle.fd = fd_;
  return handle;
}

void SharedRecords::set_done(std::uint64_t record) {
  counts_->done = record;
  counts_->changes.fetch_add(1);
  (void)::syscall(SYS_futex, &counts_->changes, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

void SharedRecords::wait(std::uint64_t record) const {
  for (;;) {
    const std::uint32_t seen = counts_->changes;
    if (is_done(record)) return;
    // The driver gives up what a process has left behind; nothing tells others here.
    pollfd owner{owner_, POLLIN, 0};
    if (owner_ >= 0 && ::poll(&owner, 1, 0) > 0) return;
    const timespec a_moment{0, 100'000'000};
    (void)::syscall(SYS_futex, &counts_->changes, FUTEX_WAIT, seen, &a_moment, nullptr, 0);
  }
}

}  // namespace ddl::stand_ins
