// Elements one by one: how they are read, combined, scaled and written. Kept free of the standard library
// (kernels.h).
#pragma once

#include <cstddef>
#include <cstdint>

namespace ddl::runtime {
namespace {

// The conversions are those of ddl/half.hpp and ddl/float8.hpp, which the tests compare with these. Their classes
// cannot be used here: their member functions are inline and not in an anonymous namespace.
struct Float16 {
  std::uint16_t bits;
};
struct Bfloat16 {
  std::uint16_t bits;
};
/// kMost: the bits of the largest value, after which those of infinity come if there is one. Without it, what does not
/// fit becomes NaN.
template <std::uint32_t kFraction, std::uint32_t kBias, std::uint32_t kMost, std::uint32_t kNan,
          bool kHasInfinity>
struct Float8 {
  std::uint8_t bits;

  static constexpr std::uint32_t kRebias = 127 - kBias;  ///< makes its exponent a float's
  static constexpr bool kHasNegativeZero = kNan != 0x80;
};
using Float8E4m3fn = Float8<3, 7, 0x7E, 0x7F, false>;
using Float8E5m2 = Float8<2, 15, 0x7B, 0x7F, true>;
using Float8E4m3fnuz = Float8<3, 8, 0x7F, 0x80, false>;
using Float8E5m2fnuz = Float8<2, 16, 0x7F, 0x80, false>;

template <bool kFirst, class First, class Second>
struct Choice {
  using Type = First;
};
template <class First, class Second>
struct Choice<false, First, Second> {
  using Type = Second;
};

template <class T>
constexpr bool kIsInteger = false;
template <>
inline constexpr bool kIsInteger<std::uint8_t> = true;
template <>
inline constexpr bool kIsInteger<std::int8_t> = true;
template <>
inline constexpr bool kIsInteger<std::uint16_t> = true;
template <>
inline constexpr bool kIsInteger<std::int16_t> = true;
template <>
inline constexpr bool kIsInteger<std::uint32_t> = true;
template <>
inline constexpr bool kIsInteger<std::int32_t> = true;
template <>
inline constexpr bool kIsInteger<std::uint64_t> = true;
template <>
inline constexpr bool kIsInteger<std::int64_t> = true;

template <class A, class B>
constexpr bool kIsSame = false;
template <class T>
inline constexpr bool kIsSame<T, T> = true;

template <class T>
constexpr bool kIsSigned = static_cast<T>(-1) < static_cast<T>(1);

inline std::uint32_t bits_of(float value) { return __builtin_bit_cast(std::uint32_t, value); }
inline float float_of(std::uint32_t bits) { return __builtin_bit_cast(float, bits); }

/// An element as the type that it is combined in.
template <class T>
inline T value_of(T element) {
  return element;
}
inline float value_of(Bfloat16 element) { return float_of(static_cast<std::uint32_t>(element.bits) << 16); }
inline float value_of(Float16 element) {
  const std::uint32_t sign = static_cast<std::uint32_t>(element.bits & 0x8000u) << 16;
  const std::uint32_t rest = element.bits & 0x7FFFu;
  const std::uint32_t small = bits_of(static_cast<float>(static_cast<std::int32_t>(rest)) * 0x1p-24f);
  const std::uint32_t normal = (rest << 13) + 0x38000000u;
  const std::uint32_t huge = rest << 13 | 0x7F800000u;
  const std::uint32_t magnitude = rest < 0x400u ? small : rest < 0x7C00u ? normal : huge;
  return float_of(sign | magnitude);
}

template <std::uint32_t kFraction, std::uint32_t kBias, std::uint32_t kMost, std::uint32_t kNan,
          bool kHasInfinity>
inline float value_of(Float8<kFraction, kBias, kMost, kNan, kHasInfinity> element) {
  using T = Float8<kFraction, kBias, kMost, kNan, kHasInfinity>;
  const std::uint32_t bits = element.bits;
  const std::uint32_t sign = (bits & 0x80u) << 24;
  const std::uint32_t rest = bits & 0x7Fu;
  const std::uint32_t small = bits_of(static_cast<float>(static_cast<std::int32_t>(rest)) *
                                      float_of((1 + T::kRebias - kFraction) << 23));
  const std::uint32_t normal = (rest << (23 - kFraction)) + (T::kRebias << 23);
  const std::uint32_t huge = kHasInfinity && rest == kMost + 1 ? 0x7F800000u : 0x7FC00000u;
  const bool is_huge = T::kHasNegativeZero ? rest > kMost : bits == kNan;
  return float_of(sign | (is_huge ? huge : rest < 1u << kFraction ? small : normal));
}

template <class T>
struct Store {
  template <class Value>
  static T from(Value value) {
    return static_cast<T>(value);
  }
};
template <>
struct Store<Bfloat16> {
  static Bfloat16 from(float value) {
    const std::uint32_t all = bits_of(value);
    const std::uint32_t rounded = (all + 0x7FFFu + (all >> 16 & 1u)) >> 16;
    return {static_cast<std::uint16_t>((all & 0x7FFFFFFFu) > 0x7F800000u ? 0x7FC0u : rounded)};
  }
};
template <>
struct Store<Float16> {
  static Float16 from(float value) {
    const std::uint32_t all = bits_of(value);
    const std::uint32_t sign = all >> 16 & 0x8000u;
    const std::uint32_t magnitude = all & 0x7FFFFFFFu;
    // Below 2^-14 the addition rounds: 0.5 puts the value's unit where a float's last bit is.
    const std::uint32_t small = bits_of(float_of(magnitude) + 0.5f) - 0x3F000000u;
    const std::uint32_t normal = (magnitude - 0x38000000u + 0xFFFu + (magnitude >> 13 & 1u)) >> 13;
    const std::uint32_t half = magnitude < 0x38800000u ? small : magnitude < 0x477FF000u ? normal : 0x7C00u;
    return {static_cast<std::uint16_t>(magnitude > 0x7F800000u ? 0x7E00u : sign | half)};
  }
};

template <std::uint32_t kFraction, std::uint32_t kBias, std::uint32_t kMost, std::uint32_t kNan,
          bool kHasInfinity>
struct Store<Float8<kFraction, kBias, kMost, kNan, kHasInfinity>> {
  using T = Float8<kFraction, kBias, kMost, kNan, kHasInfinity>;
  static T from(float value) {
    const std::uint32_t all = bits_of(value);
    const std::uint32_t sign = all >> 24 & 0x80u;
    const std::uint32_t magnitude = all & 0x7FFFFFFFu;
    // Below the least normal value the addition rounds: the anchor puts the value's unit where a float's last bit is.
    constexpr std::uint32_t kAnchor = (24 + T::kRebias - kFraction) << 23;
    const std::uint32_t small = bits_of(float_of(magnitude) + float_of(kAnchor)) - kAnchor;
    constexpr std::uint32_t kShift = 23 - kFraction;
    const std::uint32_t normal =
        (magnitude - (T::kRebias << 23) + (1u << (kShift - 1)) - 1 + (magnitude >> kShift & 1u)) >> kShift;
    const std::uint32_t rounded = magnitude < (1 + T::kRebias) << 23 ? small : normal;
    const bool is_nan = magnitude > 0x7F800000u || (!kHasInfinity && rounded > kMost);
    const std::uint32_t rest = rounded > kMost ? kMost + 1 : rounded;
    const std::uint32_t signed_bits = T::kHasNegativeZero || rest != 0 ? sign | rest : 0;
    return {static_cast<std::uint8_t>(is_nan ? kNan : signed_bits)};
  }
};

/// Replaces any NaN by one NaN: which NaN a processor makes of two, and its sign, differs. For floats and vectors of
/// them.
template <class Value>
inline Value one_nan(Value value) {
  if constexpr (kIsInteger<Value>) {
    return value;
  } else {
    return value != value ? Value{} + __builtin_nanf("") : value;
  }
}

/// The type to add and multiply in: unsigned and not promoted to int, because its overflow wraps and is defined.
template <class T>
using Arithmetic = typename Choice<kIsInteger<T> && sizeof(T) < 4, std::uint32_t, T>::Type;

// Operations on two values of one type. Sums and products of integers are done in unsigned types alone.
struct Sum {
  template <class Value>
  static Value of(Value a, Value b) {
    if constexpr (kIsInteger<Value>) {
      return static_cast<Value>(static_cast<Arithmetic<Value>>(a) + static_cast<Arithmetic<Value>>(b));
    } else {
      return one_nan(a + b);
    }
  }
};

struct Product {
  template <class Value>
  static Value of(Value a, Value b) {
    if constexpr (kIsInteger<Value>) {
      return static_cast<Value>(static_cast<Arithmetic<Value>>(a) * static_cast<Arithmetic<Value>>(b));
    } else {
      return one_nan(a * b);
    }
  }
};

// a != a is true for NaN only. If b is NaN the comparison is false and b is taken.
struct Min {
  template <class Value>
  static Value of(Value a, Value b) {
    return one_nan(((a < b) | (a != a)) ? a : b);
  }
};

struct Max {
  template <class Value>
  static Value of(Value a, Value b) {
    return one_nan(((a > b) | (a != a)) ? a : b);
  }
};

struct BitAnd {
  static std::uint8_t of(std::uint8_t a, std::uint8_t b) { return a & b; }
};

struct BitOr {
  static std::uint8_t of(std::uint8_t a, std::uint8_t b) { return a | b; }
};

struct BitXor {
  static std::uint8_t of(std::uint8_t a, std::uint8_t b) { return a ^ b; }
};

struct LogicalAnd {
  template <class Value>
  static Value of(Value a, Value b) {
    return static_cast<Value>((a != 0) & (b != 0));
  }
};

struct LogicalOr {
  template <class Value>
  static Value of(Value a, Value b) {
    return static_cast<Value>((a != 0) | (b != 0));
  }
};

struct LogicalXor {
  template <class Value>
  static Value of(Value a, Value b) {
    return static_cast<Value>((a != 0) != (b != 0));
  }
};

/// The operation that gives the result of a single input, if it gets this input as both operands.
template <class Op>
struct Alone {
  using Type = Op;  // and, or, min, max: a op a == a, as a truth value or with one NaN
};
template <>
struct Alone<Sum> {
  using Type = Min;
};
template <>
struct Alone<Product> {
  using Type = Min;
};
template <>
struct Alone<BitXor> {
  using Type = BitAnd;
};
template <>
struct Alone<LogicalXor> {
  using Type = LogicalAnd;
};

/// An integer times factor, truncated toward zero, and saturated to the range of its type.
template <class T>
inline T scaled_integer(T element, double factor) {
  constexpr int kBits = static_cast<int>(sizeof(T)) * 8 - (kIsSigned<T> ? 1 : 0);
  constexpr T kMax = static_cast<T>(~std::uint64_t{0} >> (64 - kBits));
  constexpr T kMin = static_cast<T>(~kMax);  // 0 without a sign
  constexpr double kOverflow = static_cast<double>(std::uint64_t{1} << (kBits - 1)) * 2.0;
  const double product = static_cast<double>(element) * factor;
  // Converting a value out of range is undefined, and processors differ.
  if (product >= kOverflow) return kMax;
  if (product <= static_cast<double>(kMin)) return kMin;
  return static_cast<T>(product);
}

}  // namespace
}  // namespace ddl::runtime
