#include "runtime/src/collective/reduce_kernel.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <type_traits>

#include "base/error.h"
#include "ddl/half.hpp"
#include "runtime/src/collective/element.h"
#include "runtime/src/collective/instruction_set.h"

namespace ddl::runtime {
namespace {

/// Elements that go through all inputs, and where they are combined in a wider type through rounding, at a time.
constexpr std::size_t kBlock = 1024;

struct Bool {
  std::uint8_t byte;
};

/// An element as the type that it is combined in: itself, float for 16-bit floats, 0 or 1 for bool.
template <class T>
T load(T element) {
  return element;
}
inline float load(float16 element) { return element; }
inline float load(bfloat16 element) { return element; }
inline std::uint8_t load(Bool element) { return element.byte != 0 ? 1 : 0; }

template <class T, class Value>
T store(Value value) {
  if constexpr (std::is_same_v<T, Bool>) {
    return Bool{static_cast<std::uint8_t>(value)};
  } else {
    return static_cast<T>(value);
  }
}

/// Which NaN a processor makes of two, and with which sign, is its own affair.
template <class T>
T one_nan(T value) {
  if constexpr (std::is_floating_point_v<T>) {
    return value != value ? std::numeric_limits<T>::quiet_NaN() : value;
  } else {
    return value;
  }
}

/// The type to add and multiply in: unsigned and not promoted to int, because its overflow wraps and is defined.
template <class T>
using Arithmetic =
    typename std::conditional_t<!std::is_integral_v<T>, std::type_identity<T>,
                                std::conditional_t<sizeof(T) == 8, std::type_identity<std::uint64_t>,
                                                   std::type_identity<std::uint32_t>>>::type;

struct Keep {
  template <class T>
  static T alone(T a) {
    return one_nan(a);
  }
};

struct Sum : Keep {
  template <class T>
  static T combine(T a, T b) {
    return one_nan(static_cast<T>(static_cast<Arithmetic<T>>(a) + static_cast<Arithmetic<T>>(b)));
  }
};

struct Product : Keep {
  template <class T>
  static T combine(T a, T b) {
    return one_nan(static_cast<T>(static_cast<Arithmetic<T>>(a) * static_cast<Arithmetic<T>>(b)));
  }
};

// a != a is true for NaN only. If b is NaN the comparison is false and b is taken.
struct Min : Keep {
  template <class T>
  static T combine(T a, T b) {
    return one_nan(a < b || a != a ? a : b);
  }
};

struct Max : Keep {
  template <class T>
  static T combine(T a, T b) {
    return one_nan(a > b || a != a ? a : b);
  }
};

struct BitAnd : Keep {
  template <class T>
  static T combine(T a, T b) {
    return static_cast<T>(a & b);
  }
};

struct BitOr : Keep {
  template <class T>
  static T combine(T a, T b) {
    return static_cast<T>(a | b);
  }
};

struct BitXor : Keep {
  template <class T>
  static T combine(T a, T b) {
    return static_cast<T>(a ^ b);
  }
};

struct Truth {
  template <class T>
  static T alone(T a) {
    return a != 0 ? 1 : 0;
  }
};

struct LogicalAnd : Truth {
  template <class T>
  static T combine(T a, T b) {
    return static_cast<T>((a != 0) & (b != 0));
  }
};

struct LogicalOr : Truth {
  template <class T>
  static T combine(T a, T b) {
    return static_cast<T>((a != 0) | (b != 0));
  }
};

struct LogicalXor : Truth {
  template <class T>
  static T combine(T a, T b) {
    return static_cast<T>((a != 0) != (b != 0));
  }
};

#ifdef __clang__
#define DDL_INDEPENDENT_ELEMENTS _Pragma("clang loop vectorize(assume_safety)")
#define DDL_AVX512 "avx512f,avx512bw,avx512dq,avx512vl"
#else
#define DDL_INDEPENDENT_ELEMENTS _Pragma("GCC ivdep")
#define DDL_AVX512 "avx512f,avx512bw,avx512dq,avx512vl,prefer-vector-width=512"
#endif

/// Combines count elements from the first-th on, as values of a type that is wide enough. out may be one of the first two
/// inputs: every element is read before it is written. Inlined into a function for each instruction set; what an element
/// comes to is the same in all, because elements do not meet and nothing is contracted.
template <class Op, class T, class Value>
[[gnu::always_inline]] inline void reduce_loops(const std::byte* const* inputs, std::size_t ranks,
                                                std::size_t first, Value* out, std::size_t count) {
  const auto input = [&](std::size_t i) { return reinterpret_cast<const T*>(inputs[i]) + first; };
  const T* a = input(0);
  if (ranks == 1) {
    DDL_INDEPENDENT_ELEMENTS
    for (std::size_t e = 0; e < count; ++e) out[e] = Op::alone(static_cast<Value>(load(a[e])));
    return;
  }
  const T* b = input(1);
  DDL_INDEPENDENT_ELEMENTS
  for (std::size_t e = 0; e < count; ++e)
    out[e] = Op::combine(static_cast<Value>(load(a[e])), static_cast<Value>(load(b[e])));
  for (std::size_t i = 2; i < ranks; ++i) {
    const T* next = input(i);
    DDL_INDEPENDENT_ELEMENTS
    for (std::size_t e = 0; e < count; ++e) out[e] = Op::combine(out[e], static_cast<Value>(load(next[e])));
  }
}

#if defined(__x86_64__)
template <class Op, class T, class Value>
[[gnu::target("avx2")]] void reduce_avx2(const std::byte* const* inputs, std::size_t ranks, std::size_t first,
                                         Value* out, std::size_t count) {
  reduce_loops<Op, T, Value>(inputs, ranks, first, out, count);
}
template <class Op, class T, class Value>
[[gnu::target(DDL_AVX512)]] void reduce_avx512(const std::byte* const* inputs, std::size_t ranks,
                                               std::size_t first, Value* out, std::size_t count) {
  reduce_loops<Op, T, Value>(inputs, ranks, first, out, count);
}
#endif

template <class Op, class T, class Value>
void reduce_into(std::span<const std::byte* const> inputs, std::size_t first, Value* out, std::size_t count) {
#if defined(__x86_64__)
  switch (instruction_set()) {
    case InstructionSet::kAvx512:
      return reduce_avx512<Op, T, Value>(inputs.data(), inputs.size(), first, out, count);
    case InstructionSet::kAvx2:
      return reduce_avx2<Op, T, Value>(inputs.data(), inputs.size(), first, out, count);
    case InstructionSet::kBaseline: break;
  }
#endif
  reduce_loops<Op, T, Value>(inputs.data(), inputs.size(), first, out, count);
}

template <class T, class Value>
void finish(const Value* partials, T* out, std::size_t count, bool divide, int ranks) {
  if (divide) {
    const auto divisor = static_cast<Value>(ranks);
    for (std::size_t e = 0; e < count; ++e) out[e] = store<T>(partials[e] / divisor);
  } else {
    for (std::size_t e = 0; e < count; ++e) out[e] = store<T>(partials[e]);
  }
}

/// Calls f.operator()<T>() with the type of an element in memory.
template <class F>
void with_type(ddl_dtype dtype, F f) {
  switch (dtype) {
    case DDL_UINT8: return f.template operator()<std::uint8_t>();
    case DDL_INT8: return f.template operator()<std::int8_t>();
    case DDL_UINT16: return f.template operator()<std::uint16_t>();
    case DDL_INT16: return f.template operator()<std::int16_t>();
    case DDL_UINT32: return f.template operator()<std::uint32_t>();
    case DDL_INT32: return f.template operator()<std::int32_t>();
    case DDL_UINT64: return f.template operator()<std::uint64_t>();
    case DDL_INT64: return f.template operator()<std::int64_t>();
    case DDL_FLOAT16: return f.template operator()<float16>();
    case DDL_BFLOAT16: return f.template operator()<bfloat16>();
    case DDL_FLOAT32: return f.template operator()<float>();
    case DDL_FLOAT64: return f.template operator()<double>();
    case DDL_BOOL: return f.template operator()<Bool>();
    default: DDL_CHECK(false, "dtype " + std::to_string(dtype));
  }
}

template <class T>
using ValueOf = decltype(load(T{}));
/// What an average of T is summed in.
template <class T>
using SumOf =
    typename std::conditional_t<std::is_integral_v<T>,
                                std::conditional_t<std::is_signed_v<T>, std::type_identity<std::int64_t>,
                                                   std::type_identity<std::uint64_t>>,
                                std::type_identity<ValueOf<T>>>::type;

/// Calls f.operator()<Op, Value>() with how to combine elements of type T, and in what type.
template <class T, class F>
void with_op(ddl_op op, F f) {
  using Value = ValueOf<T>;
  constexpr bool kIsBool = std::is_same_v<T, Bool>;
  if constexpr (!kIsBool) {
    switch (op) {
      // NOLINTNEXTLINE(bugprone-branch-clone): the types of sums differ for some T
      case DDL_SUM: return f.template operator()<Sum, Value>();
      case DDL_AVERAGE: return f.template operator()<Sum, SumOf<T>>();
      case DDL_PRODUCT: return f.template operator()<Product, Value>();
      default: break;
    }
  }
  if constexpr (std::is_integral_v<T> || kIsBool) {
    switch (op) {
      case DDL_BIT_AND: return f.template operator()<BitAnd, Value>();
      case DDL_BIT_OR: return f.template operator()<BitOr, Value>();
      case DDL_BIT_XOR: return f.template operator()<BitXor, Value>();
      case DDL_LOGICAL_AND: return f.template operator()<LogicalAnd, Value>();
      case DDL_LOGICAL_OR: return f.template operator()<LogicalOr, Value>();
      case DDL_LOGICAL_XOR: return f.template operator()<LogicalXor, Value>();
      default: break;
    }
  }
  switch (op) {
    case DDL_MIN: return f.template operator()<Min, Value>();
    case DDL_MAX: return f.template operator()<Max, Value>();
    default: DDL_CHECK(false, "op " + std::to_string(op));
  }
}

}  // namespace

void reduce_chunk(const Reduction& reduction, std::span<const std::byte* const> inputs, std::byte* out,
                  std::size_t count) {
  const int ranks = static_cast<int>(inputs.size());
  with_type(reduction.dtype, [&]<class T>() {
    T* elements = reinterpret_cast<T*>(out);
    with_op<T>(reduction.op, [&]<class Op, class Value>() {
      // A block goes through all inputs before the next one, so that it stays in the first cache.
      [[maybe_unused]] Value wide[kBlock];
      for (std::size_t first = 0; first < count; first += kBlock) {
        const std::size_t size = std::min(kBlock, count - first);
        if constexpr (std::is_same_v<T, Value>) {
          reduce_into<Op, T>(inputs, first, elements + first, size);
          if (reduction.op == DDL_AVERAGE) finish(elements + first, elements + first, size, true, ranks);
        } else {
          reduce_into<Op, T>(inputs, first, wide, size);
          finish(wide, elements + first, size, reduction.op == DDL_AVERAGE, ranks);
        }
      }
    });
  });
}

void reduce_partials(const Reduction& reduction, std::span<const std::byte* const> inputs, std::byte* out,
                     std::size_t count) {
  with_type(reduction.dtype, [&]<class T>() {
    with_op<T>(reduction.op, [&]<class Op, class Value>() {
      Value* values = reinterpret_cast<Value*>(out);
      for (std::size_t first = 0; first < count; first += kBlock) {
        reduce_into<Op, T>(inputs, first, values + first, std::min(kBlock, count - first));
      }
    });
  });
}

void finish_chunk(const Reduction& reduction, const std::byte* partials, std::byte* out, std::size_t count,
                  int ranks) {
  with_type(reduction.dtype, [&]<class T>() {
    with_op<T>(reduction.op, [&]<class, class Value>() {
      finish(reinterpret_cast<const Value*>(partials), reinterpret_cast<T*>(out), count, reduction.op == DDL_AVERAGE,
             ranks);
    });
  });
}

}  // namespace ddl::runtime
