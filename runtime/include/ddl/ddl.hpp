// libddl for C++17: a header-only wrapper over ddl.h. Nothing of the C++ ABI crosses the library's boundary.
#ifndef DDL_DDL_HPP
#define DDL_DDL_HPP

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

#include "ddl/ddl.h"
#include "ddl/half.hpp"

namespace ddl {

/// The one exception type: what() is the library's sentence, status() its code.
class Error : public std::runtime_error {
 public:
  Error(ddl_status status, const std::string& message) : std::runtime_error(message), status_(status) {}
  ddl_status status() const noexcept { return status_; }

 private:
  ddl_status status_;
};

enum class Op : ddl_op {
  sum = DDL_SUM,
  average = DDL_AVERAGE,
  min = DDL_MIN,
  max = DDL_MAX,
  product = DDL_PRODUCT,
  bit_and = DDL_BIT_AND,
  bit_or = DDL_BIT_OR,
  bit_xor = DDL_BIT_XOR,
  logical_and = DDL_LOGICAL_AND,
  logical_or = DDL_LOGICAL_OR,
  logical_xor = DDL_LOGICAL_XOR
};

/// How one collective is to run; see ddl_call_options.
struct CallOptions {
  std::uint64_t process_set = DDL_WORLD;
  double timeout_seconds = 0.0;
  void* stream = nullptr;
};

namespace detail {

inline void check(ddl_status status) {
  if (status != DDL_OK) throw Error(status, ddl_last_error());
}

template <class T>
constexpr ddl_dtype dtype_of() {
  if constexpr (std::is_same_v<T, float>) {
    return DDL_FLOAT32;
  } else if constexpr (std::is_same_v<T, double>) {
    return DDL_FLOAT64;
  } else if constexpr (std::is_same_v<T, float16> || std::is_same_v<T, ddl_float16>) {
    return DDL_FLOAT16;
  } else if constexpr (std::is_same_v<T, bfloat16> || std::is_same_v<T, ddl_bfloat16>) {
    return DDL_BFLOAT16;
  } else if constexpr (std::is_same_v<T, bool>) {
    static_assert(sizeof(bool) == 1, "libddl's bool is a byte");
    return DDL_BOOL;
  } else {
    static_assert(
        std::is_integral_v<T> && sizeof(T) <= 8,
        "libddl reduces float, double, ddl::float16, ddl::bfloat16, integers of 8 to 64 bits and bool");
    constexpr ddl_dtype kSigned[] = {DDL_INT8, DDL_INT16, DDL_INT32, DDL_INT64};
    constexpr ddl_dtype kUnsigned[] = {DDL_UINT8, DDL_UINT16, DDL_UINT32, DDL_UINT64};
    constexpr int kIndex = sizeof(T) == 1 ? 0 : sizeof(T) == 2 ? 1 : sizeof(T) == 4 ? 2 : 3;
    return std::is_signed_v<T> ? kSigned[kIndex] : kUnsigned[kIndex];
  }
}

inline ddl_call_options to_c(const CallOptions& options) {
  ddl_call_options c = DDL_CALL_OPTIONS_INIT;
  c.process_set = options.process_set;
  c.timeout_seconds = options.timeout_seconds;
  c.stream = options.stream;
  return c;
}

}  // namespace detail

/// One membership in the job. Movable, not copyable; leaves the job when it is destroyed.
/// Threads: as in ddl.h, one collective at a time.
/// A rank that gives up should exit (std::exit, std::abort) before its Context is destroyed: the others are told of its
/// death, and its exit code is the job's. A Context that an exception destroys leaves in order, and who waits for it may
/// then fail and exit first.
class Context {
 public:
  /// Joins the job; collective. timeout_seconds: deadline of every collective that names none, 0 = none.
  explicit Context(double timeout_seconds = 0.0) {
    ddl_init_options options = DDL_INIT_OPTIONS_INIT;
    options.timeout_seconds = timeout_seconds;
    detail::check(ddl_init(&options, &context_));
  }
  ~Context() { ddl_finalize(context_); }
  Context(Context&& other) noexcept : context_(std::exchange(other.context_, nullptr)) {}
  Context& operator=(Context&& other) noexcept {
    std::swap(context_, other.context_);
    return *this;
  }
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  int rank() const { return ddl_rank(context_); }
  int size() const { return ddl_size(context_); }
  int local_rank() const { return ddl_local_rank(context_); }
  int local_size() const { return ddl_local_size(context_); }
  int cross_rank() const { return ddl_cross_rank(context_); }
  int cross_size() const { return ddl_cross_size(context_); }
  const char* bootstrap_name() const { return ddl_bootstrap_name(context_); }

  /// In place: data[0..count) becomes the reduction over all ranks.
  template <class T>
  void allreduce(T* data, std::size_t count, Op op = Op::sum, const CallOptions& options = {}) {
    allreduce(static_cast<const T*>(data), data, count, op, options);
  }
  template <class T>
  void allreduce(const T* send, T* recv, std::size_t count, Op op = Op::sum,
                 const CallOptions& options = {}) {
    const ddl_call_options c = detail::to_c(options);
    detail::check(
        ddl_allreduce(context_, send, recv, count, detail::dtype_of<T>(), static_cast<ddl_op>(op), &c));
  }
  /// In place over anything contiguous that has data() and size(): std::vector, std::array, Eigen's dense types.
  template <class Container, class = decltype(std::declval<Container&>().data())>
  void allreduce(Container& values, Op op = Op::sum, const CallOptions& options = {}) {
    allreduce(values.data(), static_cast<std::size_t>(values.size()), op, options);
  }

  template <class T>
  void broadcast(T* data, std::size_t count, int root, const CallOptions& options = {}) {
    const ddl_call_options c = detail::to_c(options);
    detail::check(ddl_broadcast(context_, data, count, detail::dtype_of<T>(), root, &c));
  }
  template <class Container, class = decltype(std::declval<Container&>().data())>
  void broadcast(Container& values, int root, const CallOptions& options = {}) {
    broadcast(values.data(), static_cast<std::size_t>(values.size()), root, options);
  }

  /// recv holds size()*count elements, in rank order.
  template <class T>
  void allgather(const T* send, T* recv, std::size_t count, const CallOptions& options = {}) {
    const ddl_call_options c = detail::to_c(options);
    detail::check(ddl_allgather(context_, send, recv, count, detail::dtype_of<T>(), &c));
  }

  void barrier(const CallOptions& options = {}) {
    const ddl_call_options c = detail::to_c(options);
    detail::check(ddl_barrier(context_, &c));
  }

  /// For calls of ddl.h that this wrapper does not have; stays owned by the Context.
  ddl_context* get() const { return context_; }

 private:
  ddl_context* context_ = nullptr;
};

}  // namespace ddl

#endif  // DDL_DDL_HPP
