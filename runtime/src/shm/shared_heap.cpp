#include "runtime/src/shm/shared_heap.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <string>

namespace ddl::runtime {
namespace {

/// The largest page size that Linux is built with: memory is returned to the system in whole pages.
constexpr std::size_t kGrainBytes = std::size_t{64} << 10;

bool is_limited(int resource) {
  rlimit limit{};
  return ::getrlimit(static_cast<__rlimit_resource_t>(resource), &limit) == 0 &&
         limit.rlim_cur != RLIM_INFINITY;
}

}  // namespace

SharedHeap::SharedHeap(std::span<std::byte> all, std::span<std::byte> own) : all_(all), own_(own) {
  if (all_.empty()) return;
  free_.emplace(0, own_.size());
  // A core dump would read every page of the address space. If this fails, it only costs time then.
  (void)::madvise(all_.data(), all_.size(), MADV_DONTDUMP);
}

Outcome SharedHeap::allocate(std::uint64_t bytes, void*& memory) {
  memory = nullptr;
  if (!exists()) {
    return fail(DDL_ERROR_UNSUPPORTED,
                "there is no shared heap: the address space or file size of this process is limited "
                "(ulimit -v, ulimit -f)");
  }
  const std::lock_guard lock(mutex_);
  const std::size_t wanted =
      bytes > own_.size() ? own_.size() + 1
                          : std::max<std::size_t>((bytes + kGrainBytes - 1) / kGrainBytes, 1) * kGrainBytes;
  const auto found = std::find_if(free_.begin(), free_.end(),
                                  [wanted](const auto& range) { return range.second >= wanted; });
  if (found == free_.end()) {
    return fail(DDL_ERROR_SYSTEM, "the shared heap has no space for " + std::to_string(bytes) +
                                      " bytes; this rank's part is " + std::to_string(own_.size()) +
                                      " bytes");
  }
  const auto [begin, length] = *found;
  free_.erase(found);
  if (length > wanted) free_.emplace(begin + wanted, length - wanted);
  taken_.emplace(begin, wanted);
  is_used_.store(true, std::memory_order_relaxed);
  memory = own_.data() + begin;
  return {};
}

Outcome SharedHeap::free(void* memory, bool quarantined) {
  if (memory == nullptr) return {};
  const std::lock_guard lock(mutex_);
  const auto begin = reinterpret_cast<std::uintptr_t>(memory) - reinterpret_cast<std::uintptr_t>(own_.data());
  const auto found = taken_.find(begin);
  if (!exists() || found == taken_.end()) {
    return fail(DDL_ERROR_INVALID_ARGUMENT,
                "memory is not the beginning of a block that ddl_alloc() gave this rank");
  }
  std::size_t from = begin, bytes = found->second;
  taken_.erase(found);
  if (quarantined) return {};
  // Returned to the system, so that it is zero when it is allocated again.
  if (::madvise(memory, bytes, MADV_REMOVE) != 0) std::memset(memory, 0, bytes);
  auto next = free_.lower_bound(from);
  if (next != free_.end() && next->first == from + bytes) {
    bytes += next->second;
    next = free_.erase(next);
  }
  if (next != free_.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second == from) {
      from = before->first;
      bytes += before->second;
      free_.erase(before);
    }
  }
  free_.emplace(from, bytes);
  return {};
}

std::optional<std::uint64_t> SharedHeap::offset_of(const void* memory, std::size_t bytes) const {
  const auto address = reinterpret_cast<std::uintptr_t>(memory);
  const auto begin = reinterpret_cast<std::uintptr_t>(all_.data());
  if (address < begin || address - begin > all_.size() || bytes > all_.size() - (address - begin))
    return std::nullopt;
  return address - begin;
}

bool has_plenty_of_address_space() { return !is_limited(RLIMIT_AS) && !is_limited(RLIMIT_FSIZE); }

std::size_t heap_share(int ranks) {
  if (!has_plenty_of_address_space()) return 0;
  const long pages = ::sysconf(_SC_PHYS_PAGES), page = ::sysconf(_SC_PAGE_SIZE);
  if (pages <= 0 || page <= 0) return 0;
  const std::size_t all = 2 * static_cast<std::size_t>(pages) * static_cast<std::size_t>(page);
  return all / static_cast<std::size_t>(ranks) / kGrainBytes * kGrainBytes;
}

}  // namespace ddl::runtime
