// A memory mapping with one owner.
#pragma once

#include <cstddef>
#include <utility>

#include "base/error.h"

namespace ddl {

/// Owns a shared, readable and writable mapping of a descriptor and unmaps it.
class MappedMemory {
 public:
  MappedMemory() = default;
  ~MappedMemory();
  MappedMemory(MappedMemory&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  MappedMemory& operator=(MappedMemory&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  MappedMemory(const MappedMemory&) = delete;
  MappedMemory& operator=(const MappedMemory&) = delete;

  /// Maps the first size bytes of fd; the descriptor may be closed afterwards.
  static Result<MappedMemory> map_shared(int fd, std::size_t size);

  std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }

 private:
  MappedMemory(std::byte* data, std::size_t size) : data_(data), size_(size) {}
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace ddl
