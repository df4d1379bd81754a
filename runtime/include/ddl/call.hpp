// How one call is to run, and on what type of elements. Part of ddl.hpp.
#ifndef DDL_CALL_HPP
#define DDL_CALL_HPP

#include <cstdint>
#include <type_traits>

#include "ddl/ddl.h"
#include "ddl/half.hpp"

namespace ddl {

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
  double prescale = 1.0;
  double postscale = 1.0;
};

namespace detail {

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
  c.prescale = options.prescale;
  c.postscale = options.postscale;
  return c;
}

}  // namespace detail

}  // namespace ddl

#endif  // DDL_CALL_HPP
