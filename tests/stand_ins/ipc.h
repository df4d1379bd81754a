// What processes of a host share of GPUs that exist in each of them only: an allocation's memory, and how far a stream has
// come. A handle names an open file of the process that gave it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "stand_ins/gpu.h"

namespace ddl::stand_ins {

/// As large as the vendors' handles, and passed by value as they are.
struct IpcHandle {
  std::uint32_t kind = 0;
  std::int32_t pid = 0;
  std::int32_t fd = 0;
  std::int32_t gpu = 0;  ///< of the host
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  std::uint64_t unused[4] = {};
};
static_assert(sizeof(IpcHandle) == 64);

/// The process that shares it has been there by now.
int open_file_of(const IpcHandle& handle);

IpcHandle handle_of(const GpuMemory& memory, const GpuMemory::Allocation& allocation, int gpu_of_host);
/// 0: it is this process's own, or not there.
std::uintptr_t open_memory(GpuMemory& memory, const IpcHandle& handle, int gpu);

/// The records of an event that other processes see.
class SharedRecords {
 public:
  static std::shared_ptr<SharedRecords> make();
  /// Null: it is this process's own, or not there.
  static std::shared_ptr<SharedRecords> open(const IpcHandle& handle);
  ~SharedRecords();
  SharedRecords(const SharedRecords&) = delete;
  SharedRecords& operator=(const SharedRecords&) = delete;

  IpcHandle handle() const;
  bool is_opened() const { return owner_ >= 0; }
  /// The number of one more record.
  std::uint64_t add() { return counts_->recorded.fetch_add(1) + 1; }
  std::uint64_t last() const { return counts_->recorded; }
  void set_done(std::uint64_t record);
  bool is_done(std::uint64_t record) const { return counts_->done >= record; }
  /// Ends, too, when the process that records has ended.
  void wait(std::uint64_t record) const;

 private:
  struct Counts {
    std::atomic<std::uint64_t> recorded, done;
    std::atomic<std::uint32_t> changes;  ///< a futex
  };
  SharedRecords(int fd, Counts* counts, int owner) : fd_(fd), counts_(counts), owner_(owner) {}

  int fd_;
  Counts* counts_;
  int owner_;  ///< a pidfd of the process that records; -1: this one does
};

}  // namespace ddl::stand_ins
