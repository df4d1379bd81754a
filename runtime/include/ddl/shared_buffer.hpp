// Memory of the shared heap. Part of ddl.hpp.
#ifndef DDL_SHARED_BUFFER_HPP
#define DDL_SHARED_BUFFER_HPP

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "ddl/ddl.h"
#include "ddl/error.hpp"

namespace ddl {

/// count elements in memory that all ranks of the host can reach, made by Context::alloc() and zero at first, or the
/// result of a call that allocates it (ReceivedBuffer). Movable, not copyable; a moved-from buffer is empty and may be
/// assigned to. Must be destroyed before the Context. It is passed to collectives like any container, and large ones
/// are faster with it.
template <class T>
class SharedBuffer {
  static_assert(std::is_trivially_copyable_v<T> && !std::is_const_v<T>,
                "a SharedBuffer holds plain values that can be written");

 public:
  SharedBuffer() = default;
  /// Takes over memory for count elements that libddl has allocated for this rank, and frees it with ddl_free().
  SharedBuffer(ddl_context* context, T* memory, std::size_t count)
      : context_(context), data_(memory), size_(count) {}
  ~SharedBuffer() { free(); }
  SharedBuffer(SharedBuffer&& other) noexcept
      : context_(std::exchange(other.context_, nullptr)),
        data_(std::exchange(other.data_, nullptr)),
        size_(std::exchange(other.size_, 0)) {}
  SharedBuffer& operator=(SharedBuffer&& other) noexcept {
    if (this == &other) return *this;
    free();
    context_ = std::exchange(other.context_, nullptr);
    data_ = std::exchange(other.data_, nullptr);
    size_ = std::exchange(other.size_, 0);
    return *this;
  }
  SharedBuffer(const SharedBuffer&) = delete;
  SharedBuffer& operator=(const SharedBuffer&) = delete;

  T* data() noexcept { return data_; }
  const T* data() const noexcept { return data_; }
  std::size_t size() const noexcept { return size_; }
  T* begin() noexcept { return data_; }
  T* end() noexcept { return data_ + size_; }
  const T* begin() const noexcept { return data_; }
  const T* end() const noexcept { return data_ + size_; }
  T& operator[](std::size_t at) { return data_[at]; }
  const T& operator[](std::size_t at) const { return data_[at]; }

 private:
  friend class Context;
  SharedBuffer(ddl_context* context, std::size_t count) : context_(context), size_(count) {
    detail::require(count <= SIZE_MAX / sizeof(T), "alloc: this number of elements does not fit into memory");
    void* memory = nullptr;
    detail::check(ddl_alloc(context, count * sizeof(T), &memory));
    data_ = static_cast<T*>(memory);
  }

  /// An empty buffer makes no call, so the thread's last error is unchanged.
  void free() noexcept {
    if (data_ != nullptr) (void)ddl_free(context_, data_);
  }

  ddl_context* context_ = nullptr;
  T* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace ddl

#endif  // DDL_SHARED_BUFFER_HPP
