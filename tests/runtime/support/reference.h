// What the collectives should compute, written a second time: one element, plainly, along the canonical tree.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

#include "ddl/ddl.h"

namespace ddl::conformance {

template <class T>
struct TypeOf;
template <>
struct TypeOf<std::int32_t> {
  static constexpr ddl_dtype value = DDL_INT32;
};
template <>
struct TypeOf<std::int64_t> {
  static constexpr ddl_dtype value = DDL_INT64;
};
template <>
struct TypeOf<float> {
  static constexpr ddl_dtype value = DDL_FLOAT32;
};
template <>
struct TypeOf<double> {
  static constexpr ddl_dtype value = DDL_FLOAT64;
};

/// Element e of rank's input in a test of the given seed: any value of the type for integers, several magnitudes up to
/// 500 for floats, so that the order of additions shows in the bits.
template <class T>
T input_element(int rank, std::uint64_t e, std::uint64_t seed) {
  std::uint64_t x =
      (seed * 1000003 + static_cast<std::uint64_t>(rank)) * 0x9E3779B97F4A7C15u + e * 0xD1B54A32D192ED03u;
  x = (x ^ (x >> 29)) * 0xBF58476D1CE4E5B9u;
  x ^= x >> 32;
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(x);
  } else {
    constexpr double kScales[] = {1e-6, 1e-5, 1e-4, 1e-3};
    const double mantissa = static_cast<double>(static_cast<std::int64_t>(x >> 8 & 0xFFFFF) - 0x80000);
    return static_cast<T>((mantissa + 0.5) * kScales[x & 3]);
  }
}

template <class T>
std::vector<T> input_of(int rank, std::uint64_t count, std::uint64_t seed) {
  std::vector<T> values(count);
  for (std::uint64_t e = 0; e < count; ++e) values[e] = input_element<T>(rank, e, seed);
  return values;
}

template <class T>
T combine(ddl_op op, T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    // Modulo 2^64, which is also right modulo 2^32.
    const auto wide_a = static_cast<std::uint64_t>(a), wide_b = static_cast<std::uint64_t>(b);
    if (op == DDL_SUM || op == DDL_AVERAGE) return static_cast<T>(wide_a + wide_b);
    if (op == DDL_PRODUCT) return static_cast<T>(wide_a * wide_b);
  } else {
    if (op == DDL_SUM || op == DDL_AVERAGE) return a + b;
    if (op == DDL_PRODUCT) return a * b;
    if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<T>::quiet_NaN();
  }
  if (op == DDL_MIN) return a < b ? a : b;
  return a > b ? a : b;
}

/// The ranks of each host, hosts in the order of their lowest ranks.
using Groups = std::vector<std::vector<int>>;

/// The ranks of a host in order; then hosts: as many pairs from the front as there are hosts above a power of two, then
/// neighbours, then neighbours of those, until one value is left.
template <class T>
T reduced_element(ddl_op op, const Groups& groups, std::uint64_t e, std::uint64_t seed) {
  std::vector<T> values;
  std::size_t ranks = 0;
  for (const std::vector<int>& group : groups) {
    T value = input_element<T>(group[0], e, seed);
    for (std::size_t i = 1; i < group.size(); ++i)
      value = combine(op, value, input_element<T>(group[i], e, seed));
    values.push_back(value);
    ranks += group.size();
  }
  std::size_t power = 1;
  while (power * 2 <= values.size()) power *= 2;
  for (std::size_t pairs = values.size() - power; values.size() > 1; pairs = values.size() / 2) {
    if (pairs == 0) pairs = values.size() / 2;
    std::vector<T> next;
    for (std::size_t i = 0; i < pairs; ++i) next.push_back(combine(op, values[2 * i], values[2 * i + 1]));
    next.insert(next.end(), values.begin() + static_cast<std::ptrdiff_t>(2 * pairs), values.end());
    values = next;
  }
  return op == DDL_AVERAGE ? static_cast<T>(values[0] / static_cast<T>(ranks)) : values[0];
}

}  // namespace ddl::conformance
