// A rank's own buffers, the same for every entrant.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <utility>
#include <vector>

#include "base/error.h"

namespace ddl::bench {

/// Private, page-aligned memory that does not come from malloc: how malloc is tuned then concerns the library under
/// test and not the buffer it is given.
class PrivateBuffer {
 public:
  static Result<PrivateBuffer> allocate(std::size_t size) {
    void* data = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED) return fail_errno("mmap the buffer");
    return PrivateBuffer(data, size);
  }
  ~PrivateBuffer() {
    if (data_ != nullptr) ::munmap(data_, size_);
  }
  PrivateBuffer(PrivateBuffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(other.size_) {}
  PrivateBuffer& operator=(PrivateBuffer&&) = delete;

  float* floats() const { return static_cast<float*>(data_); }

 private:
  PrivateBuffer(void* data, std::size_t size) : data_(data), size_(size) {}
  void* data_;
  std::size_t size_;
};

/// Buffers for measure() that live as long as this.
class PrivateMemory {
 public:
  Result<float*> allocate(std::size_t bytes) {
    auto buffer = PrivateBuffer::allocate(bytes);
    if (!buffer) return fail(std::move(buffer.error()));
    buffers_.push_back(std::move(*buffer));
    return buffers_.back().floats();
  }

 private:
  std::vector<PrivateBuffer> buffers_;
};

}  // namespace ddl::bench
