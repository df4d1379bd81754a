// The result of a named tensor, before it is complete. Part of ddl.hpp.
#ifndef DDL_FUTURE_HPP
#define DDL_FUTURE_HPP

#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "ddl/call.hpp"
#include "ddl/ddl.h"
#include "ddl/error.hpp"
#include "ddl/shared_buffer.hpp"

namespace ddl {

/// The result of Context::allgatherv_async() and Context::alltoallv_async(): all ranks' parts one after the other, in
/// memory that libddl has allocated, and how many elements came from each. Must be destroyed before the Context.
template <class T>
struct ReceivedBuffer {
  SharedBuffer<T> values;
  std::vector<std::uint64_t> counts;
};

namespace detail {

/// Owns a ddl_handle. The destructor waits for the tensor.
class Handle {
 public:
  Handle() = default;
  explicit Handle(ddl_handle* handle) : handle_(handle) {}
  ~Handle() {
    if (handle_ != nullptr) (void)ddl_wait(handle_);
  }
  Handle(Handle&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Handle& operator=(Handle&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;

  bool is_open() const noexcept { return handle_ != nullptr; }
  bool is_ready() const {
    require_open();
    std::int32_t done = 0;
    check(ddl_test(handle_, &done));
    return done != 0;
  }
  void wait() {
    require_open();
    check(ddl_wait(std::exchange(handle_, nullptr)));
  }
  /// For the function that submits the tensor.
  ddl_handle** out() noexcept { return &handle_; }

 private:
  void require_open() const {
    require(handle_ != nullptr, "this Future has no tensor: its result was fetched, or it was moved from");
  }

  ddl_handle* handle_ = nullptr;
};

/// Where a call stores its result: the address does not change while the Future is moved.
template <class Result>
struct Pending;

template <>
struct Pending<void> {};

template <class T>
struct Pending<std::vector<T>> {
  explicit Pending(std::vector<T> room) : values(std::move(room)) {}
  std::vector<T> take() { return std::move(values); }

  std::vector<T> values;
};

template <class T>
struct Pending<ReceivedBuffer<T>> {
  Pending(ddl_context* of, std::size_t ranks) : context(of), counts(ranks) {}
  ~Pending() {
    if (memory != nullptr) (void)ddl_free(context, memory);
  }
  Pending(const Pending&) = delete;
  Pending& operator=(const Pending&) = delete;

  ReceivedBuffer<T> take() {
    const auto count = static_cast<std::size_t>(sum_of(counts));
    return {{context, static_cast<T*>(std::exchange(memory, nullptr)), count}, std::move(counts)};
  }

  ddl_context* context;
  void* memory = nullptr;
  std::vector<std::uint64_t> counts;
};

template <class Derived>
class NamedCalls;

}  // namespace detail

/// A named tensor that was submitted; Future<void> if the call writes to a buffer of the caller. Movable, not
/// copyable. Different Futures may be used by different threads at the same time.
///
/// The buffers of a call belong to it until it is complete. So they must live longer than the Future, and its
/// destructor waits until the call is complete; the result or the error is then lost. A Future that is not kept waits
/// at once. As a tensor may be waiting for other ranks, a rank that gives up calls Context::abort(), or exits, while
/// the Future is alive.
///
/// The Context must be alive when get() is called, and when a Future<ReceivedBuffer<T>> is destroyed.
template <class Result>
class [[nodiscard]] Future {
 public:
  Future() = default;
  Future(Future&&) noexcept = default;
  /// The tensor that this object had is waited for by the destructor of other.
  Future& operator=(Future&& other) noexcept {
    std::swap(pending_, other.pending_);
    handle_ = std::move(other.handle_);
    return *this;
  }
  Future(const Future&) = delete;
  Future& operator=(const Future&) = delete;
  ~Future() = default;

  /// Whether there is a tensor whose result has not been fetched.
  bool valid() const noexcept { return handle_.is_open(); }
  /// Whether the tensor is complete: then get() does not wait.
  bool is_ready() const { return handle_.is_ready(); }
  /// Waits until the tensor is complete and returns its result, or throws Error. Once.
  Result get() {
    handle_.wait();
    if constexpr (!std::is_void_v<Result>) return std::exchange(pending_, nullptr)->take();
  }

 private:
  template <class Derived>
  friend class detail::NamedCalls;
  explicit Future(std::unique_ptr<detail::Pending<Result>> pending) : pending_(std::move(pending)) {}

  std::unique_ptr<detail::Pending<Result>> pending_;
  detail::Handle handle_;  ///< the last member: its destructor runs first
};

}  // namespace ddl

#endif  // DDL_FUTURE_HPP
