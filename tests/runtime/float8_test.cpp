// The 8-bit floats, by the tables of their specifications.
#include "ddl/float8.hpp"

#include <cmath>
#include <cstdint>
#include <limits>

#include "runtime/support/reference.h"
#include "support/catch.h"

using ddl::float8_e4m3fn;
using ddl::float8_e4m3fnuz;
using ddl::float8_e5m2;
using ddl::float8_e5m2fnuz;

namespace {

template <class Float8>
Float8 with_bits(unsigned bits) {
  Float8 element;
  element.bits = static_cast<std::uint8_t>(bits);
  return element;
}

template <class Float8>
float value_of_bits(unsigned bits) {
  return with_bits<Float8>(bits);
}

/// A pattern that has a finite value stands for sign * fraction * 2^exponent, and is what this value becomes.
template <class Float8>
int wrong_patterns(int bias, unsigned first_without_value) {
  constexpr int kFractionBits = ddl::conformance::kFloat8Limits<Float8>.fraction_bits;
  int wrong = 0;
  for (unsigned bits = 0; bits < first_without_value; ++bits) {
    const int exponent = static_cast<int>(bits >> kFractionBits);
    const int fraction = static_cast<int>(bits & ((1u << kFractionBits) - 1));
    const double wanted = exponent == 0
                              ? std::ldexp(fraction, 1 - bias - kFractionBits)
                              : std::ldexp(fraction + (1 << kFractionBits), exponent - bias - kFractionBits);
    const float value = value_of_bits<Float8>(bits);
    wrong += static_cast<double>(value) != wanted || std::signbit(value) || Float8(value).bits != bits;
    if (bits == 0) continue;
    const float negative = value_of_bits<Float8>(bits | 0x80);
    wrong += static_cast<double>(negative) != -wanted || Float8(negative).bits != (bits | 0x80);
  }
  return wrong;
}

/// Many floats, and in particular the middle between two elements and its neighbours.
template <class Float8>
int wrong_roundings() {
  int wrong = 0;
  const auto check = [&](float value) {
    const float got = Float8(value);
    const float wanted = ddl::conformance::narrowed<Float8>(value);
    const bool is_same = std::isnan(wanted) ? std::isnan(got) : got == wanted;
    wrong += is_same ? 0 : 1;
  };
  for (std::uint32_t high = 0; high <= 0xFFFF; ++high) {
    for (const std::uint32_t low : {0x0000u, 0x0001u, 0x8000u, 0xFFFFu})
      check(ddl::detail::float_of_bits(high << 16 | low));
  }
  return wrong;
}

}  // namespace

TEST_CASE("every 8-bit pattern converts to the float of its value, and back") {
  CHECK(wrong_patterns<float8_e4m3fn>(7, 0x7F) == 0);
  CHECK(wrong_patterns<float8_e5m2>(15, 0x7C) == 0);
  CHECK(wrong_patterns<float8_e4m3fnuz>(8, 0x80) == 0);
  CHECK(wrong_patterns<float8_e5m2fnuz>(16, 0x80) == 0);
  for (const unsigned bits : {0x7Fu, 0xFFu}) CHECK(std::isnan(value_of_bits<float8_e4m3fn>(bits)));
  for (const unsigned bits : {0x7Du, 0x7Eu, 0x7Fu, 0xFDu, 0xFEu, 0xFFu})
    CHECK(std::isnan(value_of_bits<float8_e5m2>(bits)));
  CHECK(value_of_bits<float8_e5m2>(0x7C) == std::numeric_limits<float>::infinity());
  CHECK(value_of_bits<float8_e5m2>(0xFC) == -std::numeric_limits<float>::infinity());
  CHECK(std::isnan(value_of_bits<float8_e4m3fnuz>(0x80)));
  CHECK(std::isnan(value_of_bits<float8_e5m2fnuz>(0x80)));
  CHECK(std::signbit(value_of_bits<float8_e4m3fn>(0x80)));
}

TEST_CASE("floats round to the nearest 8-bit one, ties to even; what does not fit is infinity or NaN") {
  CHECK(wrong_roundings<float8_e4m3fn>() == 0);
  CHECK(wrong_roundings<float8_e5m2>() == 0);
  CHECK(wrong_roundings<float8_e4m3fnuz>() == 0);
  CHECK(wrong_roundings<float8_e5m2fnuz>() == 0);

  CHECK(float8_e4m3fn(448.0f).bits == 0x7E);
  CHECK(float8_e4m3fn(464.0f).bits == 0x7E);  // a tie with the NaN that follows
  CHECK(float8_e4m3fn(465.0f).bits == 0x7F);
  CHECK(float8_e4m3fn(-1e30f).bits == 0x7F);
  CHECK(float8_e5m2(61439.0f).bits == 0x7B);
  CHECK(float8_e5m2(-61440.0f).bits == 0xFC);
  CHECK(float8_e5m2(std::nanf("")).bits == 0x7F);
  CHECK(float8_e4m3fnuz(247.0f).bits == 0x7F);
  CHECK(float8_e4m3fnuz(248.0f).bits == 0x80);
  CHECK(float8_e5m2fnuz(1e30f).bits == 0x80);
  CHECK(float8_e4m3fn(-1e-9f).bits == 0x80);
  CHECK(float8_e4m3fnuz(-1e-9f).bits == 0);
  CHECK(float8_e5m2fnuz(-0.0f).bits == 0);
}
