// The shared heap: memory that the ranks of a host can all reach, so that collectives on it need not copy through staging.
//
// Every rank gives out its own part of the segment and nobody else's; the others only read and write what a collective has
// told them of. Pages are charged to the job when they are first written, and given back when they are freed.
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
  /// all: the parts of all ranks of the host, of which own is this rank's; both empty if there is no heap. They outlive
  /// this.
  SharedHeap(std::span<std::byte> all, std::span<std::byte> own);

  bool exists() const { return !all_.empty(); }
  /// Somebody in this process has had memory of it.
  bool is_used() const { return is_used_.load(std::memory_order_relaxed); }

  /// Zeroed memory that begins on a page, also for 0 bytes.
  Outcome allocate(std::uint64_t bytes, void*& memory);
  /// quarantined: a rank may still write there, so the memory is not given out again.
  Outcome free(void* memory, bool quarantined);

  /// Where bytes stand in the heap, alike in every process; nullopt if they are not in it.
  std::optional<std::uint64_t> offset_of(const void* memory, std::size_t bytes) const;
  std::byte* at(std::uint64_t offset) const { return all_.data() + offset; }

 private:
  std::span<std::byte> all_;
  std::span<std::byte> own_;
  std::atomic<bool> is_used_{false};
  std::mutex mutex_;
  /// Both by where they begin in own_, with their lengths. No two free ranges touch.
  std::map<std::size_t, std::size_t> free_;
  std::map<std::size_t, std::size_t> taken_;
};

/// The process's limits (RLIMIT_AS, RLIMIT_FSIZE) let it reserve far more than it will use.
bool has_plenty_of_address_space();

/// How much each of so many ranks of this host may allocate: together twice the machine's memory, in whole pages; 0
/// unless there is plenty of address space.
std::size_t heap_share(int ranks);

}  // namespace ddl::runtime
