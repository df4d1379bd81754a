// Buffers of the suite, which detect writes outside of their bounds; with AddressSanitizer reads, too.
#pragma once

#include <sanitizer/asan_interface.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "runtime/support/expect.h"
#include "runtime/support/reference.h"

namespace ddl::conformance {

/// A buffer between two fences that nobody may touch.
template <class T>
class Fenced {
 public:
  /// shift: elements by which it is shifted from its usual alignment. heap: allocates it in the shared heap; null:
  /// does not.
  explicit Fenced(std::uint64_t count, std::size_t shift = 0, ddl_context* heap = nullptr)
      : count_(count),
        before_(kFenceBytes + shift * sizeof(T)),
        size_(before_ + count * sizeof(T) + kFenceBytes),
        heap_(heap) {
    if (heap_ == nullptr) {
      private_.resize(size_);
      begin_ = private_.data();
    } else {
      void* memory = nullptr;
      expect_ok(ddl_alloc(heap_, size_, &memory), "ddl_alloc");
      begin_ = static_cast<unsigned char*>(memory);
    }
    std::fill(begin_, begin_ + size_, kFence);
    close();
  }
  explicit Fenced(const std::vector<T>& values, std::size_t shift = 0, ddl_context* heap = nullptr)
      : Fenced(values.size(), shift, heap) {
    put(0, values);
  }
  ~Fenced() {
    open();
    if (heap_ != nullptr) (void)ddl_free(heap_, begin_);
  }
  Fenced(const Fenced&) = delete;
  Fenced& operator=(const Fenced&) = delete;

  T* data() { return reinterpret_cast<T*>(begin_ + before_); }
  T at(std::uint64_t e) { return data()[e]; }
  void put(std::uint64_t offset, const std::vector<T>& values) {
    if (!values.empty()) std::memcpy(data() + offset, values.data(), values.size() * sizeof(T));
  }
  bool fences_hold() const {
    open();
    const bool hold = std::all_of(begin_, begin_ + before_, is_fence) &&
                      std::all_of(begin_ + size_ - kFenceBytes, begin_ + size_, is_fence);
    close();
    return hold;
  }
  bool is_untouched() const {
    open();
    const bool is_untouched = std::all_of(begin_, begin_ + size_, is_fence);
    close();
    return is_untouched;
  }
  bool equals(const std::vector<T>& values) {
    return values.size() == count_ &&
           (count_ == 0 || std::memcmp(data(), values.data(), count_ * sizeof(T)) == 0);
  }

 private:
  static constexpr unsigned char kFence = 0xA5;
  static constexpr std::size_t kFenceBytes = 64;
  /// AddressSanitizer reports whoever touches the fences while they are closed. Without it, nothing happens.
  void close() const {
    ASAN_POISON_MEMORY_REGION(begin_, before_);
    ASAN_POISON_MEMORY_REGION(begin_ + size_ - kFenceBytes, kFenceBytes);
  }
  void open() const { ASAN_UNPOISON_MEMORY_REGION(begin_, size_); }
  static bool is_fence(unsigned char byte) { return byte == kFence; }

  std::uint64_t count_;
  std::size_t before_, size_;
  ddl_context* heap_;
  std::vector<unsigned char> private_;
  unsigned char* begin_ = nullptr;
};

template <class T>
void expect_bits(Fenced<T>& got, const std::vector<T>& wanted, const std::string& what) {
  expect(got.fences_hold(), what + ": wrote outside of the buffer");
  if (got.equals(wanted)) return;
  for (std::uint64_t e = 0; e < wanted.size(); ++e) {
    const T value = got.at(e);
    // NOLINTNEXTLINE(bugprone-suspicious-memory-comparison): the bits are what is promised
    expect(std::memcmp(&value, &wanted[e], sizeof(T)) == 0,
           what + ": element " + std::to_string(e) + " is " + std::to_string(static_cast<Wide<T>>(value)) +
               " instead of " + std::to_string(static_cast<Wide<T>>(wanted[e])));
  }
}

/// The same for results of floats that have been rounded in another order, or more often.
template <class T>
void expect_near(Fenced<T>& got, const std::vector<T>& wanted, const std::string& what) {
  expect(got.fences_hold(), what + ": wrote outside of the buffer");
  for (std::uint64_t e = 0; e < wanted.size(); ++e) {
    const auto value = static_cast<float>(static_cast<Wide<T>>(got.at(e)));
    const auto right = static_cast<float>(static_cast<Wide<T>>(wanted[e]));
    const float relative = sizeof(T) == 2 ? 0.02f : 1e-4f, absolute = sizeof(T) == 2 ? 16.0f : 0.01f;
    // Some of what has been too large on the way is infinite, or no number, and there the other is large.
    if (!std::isfinite(value) || !std::isfinite(right)) continue;
    expect(std::abs(value - right) <= relative * std::abs(right) + absolute,
           what + ": element " + std::to_string(e) + " is " + std::to_string(value) + " instead of about " +
               std::to_string(right));
  }
}

}  // namespace ddl::conformance
