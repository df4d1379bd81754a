// The shared heap: memory that all ranks of a host can reach, so that collectives on it need not copy through
// staging.
//
// Every rank allocates from its own part of the segment only; the others read and write only buffers that a
// collective has announced. Pages are charged to the job when they are first written, and returned to the system when
// they are freed.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <span>

#include "runtime/src/common/failure.h"

namespace ddl::runtime {

/// Thread-safe.
class SharedHeap {
 public:
  /// all: the parts of all ranks of the host, own: this rank's; both empty if there is no heap. They outlive this.
  SharedHeap(std::span<std::byte> all, std::span<std::byte> own);

  bool exists() const { return !all_.empty(); }
  /// This process has allocated memory of it.
  bool is_used() const { return is_used_.load(std::memory_order_relaxed); }

  /// Zeroed memory that begins on a page, also for 0 bytes.
  Outcome allocate(std::uint64_t bytes, void*& memory);
  /// quarantined: another rank may still write there, so the memory is not allocated again.
  Outcome free(void* memory, bool quarantined);

  /// The offset of memory in the heap, the same in every process; nullopt unless all bytes lie in the heap.
  std::optional<std::uint64_t> offset_of(const void* memory, std::size_t bytes) const;
  std::byte* at(std::uint64_t offset) const { return all_.data() + offset; }

 private:
  std::span<std::byte> all_;
  std::span<std::byte> own_;
  std::atomic<bool> is_used_{false};
  std::mutex mutex_;
  /// Both map offsets in own_ to lengths. No two free ranges are adjacent.
  std::map<std::size_t, std::size_t> free_;
  std::map<std::size_t, std::size_t> taken_;
};

/// The process's limits (RLIMIT_AS, RLIMIT_FSIZE) let it reserve far more than it will use.
bool has_plenty_of_address_space();

/// The bytes that each of this number of ranks of this host may allocate: together twice the machine's memory, a
/// multiple of the page size; 0 unless there is plenty of address space.
std::size_t heap_share(int ranks);

}  // namespace ddl::runtime
