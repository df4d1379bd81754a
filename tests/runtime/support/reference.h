// A simple second implementation of what the collectives should compute: element by element, along the canonical
// tree.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

#include "ddl/ddl.h"
#include "ddl/float8.hpp"
#include "ddl/half.hpp"

namespace ddl::conformance {

/// An element of DDL_BOOL: any byte.
enum class Flag : std::uint8_t {};

template <class T>
struct TypeOf;
template <ddl_dtype Number>
using IsType = std::integral_constant<ddl_dtype, Number>;
template <>
struct TypeOf<std::int32_t> : IsType<DDL_INT32> {};
template <>
struct TypeOf<std::int64_t> : IsType<DDL_INT64> {};
template <>
struct TypeOf<float> : IsType<DDL_FLOAT32> {};
template <>
struct TypeOf<double> : IsType<DDL_FLOAT64> {};
template <>
struct TypeOf<std::uint8_t> : IsType<DDL_UINT8> {};
template <>
struct TypeOf<std::int8_t> : IsType<DDL_INT8> {};
template <>
struct TypeOf<std::uint16_t> : IsType<DDL_UINT16> {};
template <>
struct TypeOf<std::int16_t> : IsType<DDL_INT16> {};
template <>
struct TypeOf<std::uint32_t> : IsType<DDL_UINT32> {};
template <>
struct TypeOf<std::uint64_t> : IsType<DDL_UINT64> {};
template <>
struct TypeOf<float16> : IsType<DDL_FLOAT16> {};
template <>
struct TypeOf<bfloat16> : IsType<DDL_BFLOAT16> {};
template <>
struct TypeOf<float8_e4m3fn> : IsType<DDL_FLOAT8_E4M3FN> {};
template <>
struct TypeOf<float8_e5m2> : IsType<DDL_FLOAT8_E5M2> {};
template <>
struct TypeOf<float8_e4m3fnuz> : IsType<DDL_FLOAT8_E4M3FNUZ> {};
template <>
struct TypeOf<float8_e5m2fnuz> : IsType<DDL_FLOAT8_E5M2FNUZ> {};
template <>
struct TypeOf<Flag> : IsType<DDL_BOOL> {};

template <class T>
constexpr bool kIsInteger = std::is_integral_v<T> || std::is_same_v<T, Flag>;

/// The type in which elements of T are combined: the widest integers, double for double, otherwise float.
template <class T>
using Wide =
    std::conditional_t<kIsInteger<T>, std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>,
                       std::conditional_t<std::is_same_v<T, double>, double, float>>;

/// Rounds a float to this number of fraction bits, ties to even, using only exact arithmetic.
inline float rounded_to(float value, int fraction_bits, int least_exponent) {
  if (value == 0 || !std::isfinite(value)) return value;
  const int exponent = std::max(std::ilogb(value), least_exponent);
  const double unit = std::ldexp(1.0, exponent - fraction_bits);
  return static_cast<float>(std::nearbyint(static_cast<double>(value) / unit) * unit);
}

/// What the specifications say of 8-bit floats, as their tables have it.
struct Float8Limits {
  int fraction_bits, least_exponent;
  float largest;
  bool has_infinity;
};
template <class T>
constexpr Float8Limits kFloat8Limits{};
template <>
inline constexpr Float8Limits kFloat8Limits<float8_e4m3fn>{3, -6, 448.0f, false};
template <>
inline constexpr Float8Limits kFloat8Limits<float8_e5m2>{2, -14, 57344.0f, true};
template <>
inline constexpr Float8Limits kFloat8Limits<float8_e4m3fnuz>{3, -7, 240.0f, false};
template <>
inline constexpr Float8Limits kFloat8Limits<float8_e5m2fnuz>{2, -15, 57344.0f, false};
template <class T>
constexpr bool kIsFloat8 = kFloat8Limits<T>.fraction_bits != 0;

/// The value as an element of T.
template <class T>
T narrowed(Wide<T> value) {
  if constexpr (std::is_same_v<T, float16>) {
    const float rounded = rounded_to(value, 10, -14);
    return float16(std::abs(rounded) > 65504.0f
                       ? std::copysign(std::numeric_limits<float>::infinity(), rounded)
                       : rounded);
  } else if constexpr (std::is_same_v<T, bfloat16>) {
    return bfloat16(rounded_to(value, 7, -126));
  } else if constexpr (kIsFloat8<T>) {
    constexpr Float8Limits kLimits = kFloat8Limits<T>;
    const float rounded = rounded_to(value, kLimits.fraction_bits, kLimits.least_exponent);
    if (std::abs(rounded) <= kLimits.largest) return T(rounded);
    return T(kLimits.has_infinity && !std::isnan(value)
                 ? std::copysign(std::numeric_limits<float>::infinity(), rounded)
                 : std::numeric_limits<float>::quiet_NaN());
  } else {
    return static_cast<T>(value);
  }
}

/// Element e of rank's input in a test of the given seed: any value of the type for integers, several magnitudes up
/// to 500 for floats, so that the order of additions shows in the bits.
template <class T>
T input_element(int rank, std::uint64_t e, std::uint64_t seed) {
  std::uint64_t x =
      (seed * 1000003 + static_cast<std::uint64_t>(rank)) * 0x9E3779B97F4A7C15u + e * 0xD1B54A32D192ED03u;
  x = (x ^ (x >> 29)) * 0xBF58476D1CE4E5B9u;
  x ^= x >> 32;
  if constexpr (std::is_same_v<T, Flag>) {
    return static_cast<Flag>((x & 1) != 0 ? x >> 8 | 1 : 0);
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(x);
  } else {
    constexpr double kScales[] = {1e-6, 1e-5, 1e-4, 1e-3};
    const double mantissa = static_cast<double>(static_cast<std::int64_t>(x >> 8 & 0xFFFFF) - 0x80000);
    return narrowed<T>(static_cast<Wide<T>>((mantissa + 0.5) * kScales[x & 3]));
  }
}

template <class T>
std::vector<T> input_of(int rank, std::uint64_t count, std::uint64_t seed) {
  std::vector<T> values(count);
  for (std::uint64_t e = 0; e < count; ++e) values[e] = input_element<T>(rank, e, seed);
  return values;
}

/// Combines two intermediate values: sums of narrow integers need not have wrapped yet.
template <class T>
Wide<T> combine(ddl_op op, Wide<T> a, Wide<T> b) {
  if constexpr (kIsInteger<T>) {
    const auto wide_a = static_cast<std::uint64_t>(a), wide_b = static_cast<std::uint64_t>(b);
    // Modulo 2^64, which is also right modulo less; but what is compared must have wrapped.
    switch (op) {
      case DDL_SUM:
      case DDL_AVERAGE: return static_cast<Wide<T>>(wide_a + wide_b);
      case DDL_PRODUCT: return static_cast<Wide<T>>(wide_a * wide_b);
      case DDL_BIT_AND: return static_cast<Wide<T>>(wide_a & wide_b);
      case DDL_BIT_OR: return static_cast<Wide<T>>(wide_a | wide_b);
      case DDL_BIT_XOR: return static_cast<Wide<T>>(wide_a ^ wide_b);
      case DDL_LOGICAL_AND: return a != 0 && b != 0;
      case DDL_LOGICAL_OR: return a != 0 || b != 0;
      case DDL_LOGICAL_XOR: return (a != 0) != (b != 0);
      default: break;
    }
  } else {
    if (op == DDL_SUM || op == DDL_AVERAGE) return a + b;
    if (op == DDL_PRODUCT) return a * b;
    if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<Wide<T>>::quiet_NaN();
  }
  if (op == DDL_MIN) return a < b ? a : b;
  return a > b ? a : b;
}

/// What inputs and results are multiplied by; see ddl_call_options.
struct Scales {
  double before = 1.0;
  double after = 1.0;
};

/// An intermediate value times a scale: floats in the type that they are combined in; integers as double, truncated
/// toward zero and saturated to the range of T.
template <class T>
Wide<T> scaled(Wide<T> value, double scale) {
  if (scale == 1.0) return value;
  if constexpr (std::is_same_v<T, Flag>) {
    return value;  // there are no scales of bool
  } else if constexpr (std::is_integral_v<T>) {
    using Limits = std::numeric_limits<T>;
    const double product = std::trunc(static_cast<double>(value) * scale);
    // The greatest value of 64 bits is no double: what is rounded up to does not fit any more.
    if (product >= std::ldexp(1.0, Limits::digits)) return Limits::max();
    if (product < static_cast<double>(Limits::min())) return Limits::min();
    return static_cast<Wide<T>>(product);
  } else {
    return value * static_cast<Wide<T>>(scale);
  }
}

/// The ranks of each host, hosts in the order of their lowest ranks.
using Groups = std::vector<std::vector<int>>;

constexpr bool is_logical(ddl_op op) {
  return op == DDL_LOGICAL_AND || op == DDL_LOGICAL_OR || op == DDL_LOGICAL_XOR;
}

/// A rank's input as it is combined: multiplied by prescale, and for logical operations 0 or 1.
template <class T>
Wide<T> brought_in(ddl_op op, int rank, std::uint64_t e, std::uint64_t seed, const Scales& scales) {
  // NOLINTNEXTLINE(bugprone-signed-char-misuse): of int8 the number is meant
  const auto value = scaled<T>(static_cast<Wide<T>>(input_element<T>(rank, e, seed)), scales.before);
  return std::is_same_v<T, Flag> || is_logical(op) ? static_cast<Wide<T>>(value != 0) : value;
}

/// The result; integers have wrapped around before they are multiplied.
template <class T>
T taken_out(Wide<T> value, const Scales& scales) {
  if constexpr (kIsInteger<T>) {
    return narrowed<T>(scaled<T>(static_cast<Wide<T>>(narrowed<T>(value)), scales.after));
  } else {
    return narrowed<T>(scaled<T>(value, scales.after));
  }
}

/// The ranks up to last, one after the other.
template <class T>
T scanned_element(ddl_op op, int last, std::uint64_t e, std::uint64_t seed, const Scales& scales = {}) {
  Wide<T> value = brought_in<T>(op, 0, e, seed, scales);
  for (int rank = 1; rank <= last; ++rank)
    value = combine<T>(op, value, brought_in<T>(op, rank, e, seed, scales));
  return taken_out<T>(value, scales);
}

/// The ranks of a host in order; then hosts: as many pairs from the front as there are hosts above a power of two,
/// then neighbours, then neighbours of those, until one value is left.
template <class T>
T reduced_element(ddl_op op, const Groups& groups, std::uint64_t e, std::uint64_t seed,
                  const Scales& scales = {}) {
  const auto input = [&](int rank) { return brought_in<T>(op, rank, e, seed, scales); };
  std::vector<Wide<T>> values;
  std::size_t ranks = 0;
  for (const std::vector<int>& group : groups) {
    Wide<T> value = input(group[0]);
    for (std::size_t i = 1; i < group.size(); ++i) value = combine<T>(op, value, input(group[i]));
    values.push_back(value);
    ranks += group.size();
  }
  std::size_t power = 1;
  while (power * 2 <= values.size()) power *= 2;
  for (std::size_t pairs = values.size() - power; values.size() > 1; pairs = values.size() / 2) {
    if (pairs == 0) pairs = values.size() / 2;
    std::vector<Wide<T>> next;
    for (std::size_t i = 0; i < pairs; ++i) next.push_back(combine<T>(op, values[2 * i], values[2 * i + 1]));
    next.insert(next.end(), values.begin() + static_cast<std::ptrdiff_t>(2 * pairs), values.end());
    values = next;
  }
  // NOLINTNEXTLINE(clang-analyzer-core.DivideZero): there is at least one rank
  return taken_out<T>(op == DDL_AVERAGE ? values[0] / static_cast<Wide<T>>(ranks) : values[0], scales);
}

}  // namespace ddl::conformance
