#include "runtime/src/collective/reduce_kernel.h"

#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>

#include "base/error.h"
#include "runtime/src/collective/element.h"

namespace ddl::runtime {
namespace {

/// The type to add and multiply in: unsigned for integers, because their overflow wraps and is defined.
template <class T>
using Arithmetic =
    typename std::conditional_t<std::is_integral_v<T>, std::make_unsigned<T>, std::type_identity<T>>::type;

struct Sum {
  template <class T>
  static T combine(T a, T b) {
    return static_cast<T>(static_cast<Arithmetic<T>>(a) + static_cast<Arithmetic<T>>(b));
  }
};

struct Product {
  template <class T>
  static T combine(T a, T b) {
    return static_cast<T>(static_cast<Arithmetic<T>>(a) * static_cast<Arithmetic<T>>(b));
  }
};

// a != a is true for NaN only. If b is NaN the comparison is false and b is taken.
struct Min {
  template <class T>
  static T combine(T a, T b) {
    return a < b || a != a ? a : b;
  }
};

struct Max {
  template <class T>
  static T combine(T a, T b) {
    return a > b || a != a ? a : b;
  }
};

template <class Op, class T>
void reduce_typed(std::span<const std::byte* const> inputs, T* __restrict out, std::size_t count) {
  const auto input = [&](std::size_t i) { return reinterpret_cast<const T*>(inputs[i]); };
  if (inputs.size() == 1) {
    std::memcpy(out, input(0), count * sizeof(T));
    return;
  }
  const T* __restrict a = input(0);
  const T* __restrict b = input(1);
  for (std::size_t e = 0; e < count; ++e) out[e] = Op::combine(a[e], b[e]);
  for (std::size_t i = 2; i < inputs.size(); ++i) {
    const T* __restrict next = input(i);
    for (std::size_t e = 0; e < count; ++e) out[e] = Op::combine(out[e], next[e]);
  }
}

template <class T>
void divide_typed(T* values, std::size_t count, T ranks) {
  for (std::size_t e = 0; e < count; ++e) values[e] /= ranks;
}

template <class T>
void reduce_op(ddl_op op, std::span<const std::byte* const> inputs, T* out, std::size_t count) {
  switch (op) {
    case DDL_SUM: return reduce_typed<Sum>(inputs, out, count);
    case DDL_AVERAGE: {
      reduce_typed<Sum>(inputs, out, count);
      return divide_typed(out, count, static_cast<T>(inputs.size()));
    }
    case DDL_MIN: return reduce_typed<Min>(inputs, out, count);
    case DDL_MAX: return reduce_typed<Max>(inputs, out, count);
    case DDL_PRODUCT: return reduce_typed<Product>(inputs, out, count);
    default: DDL_CHECK(false, "op " + std::to_string(op));
  }
}

}  // namespace

void reduce_chunk(ddl_dtype dtype, ddl_op op, std::span<const std::byte* const> inputs, std::byte* out,
                  std::size_t count) {
  if (count == 0) return;
  switch (dtype) {
    case DDL_INT32: return reduce_op(op, inputs, reinterpret_cast<std::int32_t*>(out), count);
    case DDL_INT64: return reduce_op(op, inputs, reinterpret_cast<std::int64_t*>(out), count);
    case DDL_FLOAT32: return reduce_op(op, inputs, reinterpret_cast<float*>(out), count);
    case DDL_FLOAT64: return reduce_op(op, inputs, reinterpret_cast<double*>(out), count);
    default: DDL_CHECK(false, "dtype " + std::to_string(dtype));
  }
}

void divide_chunk(ddl_dtype dtype, std::byte* values, std::size_t count, int ranks) {
  switch (dtype) {
    case DDL_INT32: return divide_typed(reinterpret_cast<std::int32_t*>(values), count, std::int32_t{ranks});
    case DDL_INT64: return divide_typed(reinterpret_cast<std::int64_t*>(values), count, std::int64_t{ranks});
    case DDL_FLOAT32: return divide_typed(reinterpret_cast<float*>(values), count, static_cast<float>(ranks));
    case DDL_FLOAT64:
      return divide_typed(reinterpret_cast<double*>(values), count, static_cast<double>(ranks));
    default: DDL_CHECK(false, "dtype " + std::to_string(dtype));
  }
}

}  // namespace ddl::runtime
