#include "ddl/half.hpp"

#include <cmath>
#include <limits>

#include "runtime/support/reference.h"
#include "support/catch.h"

using ddl::bfloat16;
using ddl::float16;

namespace {

/// The value of the bits, by the definition of the format.
double meaning(std::uint16_t bits, int exponent_bits) {
  const int fraction_bits = 15 - exponent_bits, bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = bits >> fraction_bits & ((1 << exponent_bits) - 1);
  const int fraction = bits & ((1 << fraction_bits) - 1);
  const double sign = (bits & 0x8000) != 0 ? -1.0 : 1.0;
  if (exponent == (1 << exponent_bits) - 1) {
    return fraction == 0 ? sign * std::numeric_limits<double>::infinity()
                         : std::numeric_limits<double>::quiet_NaN();
  }
  if (exponent == 0) return sign * std::ldexp(fraction, 1 - bias - fraction_bits);
  return sign * std::ldexp(fraction + (1 << fraction_bits), exponent - bias - fraction_bits);
}

/// Every bit pattern converts to the float of its value, and back.
template <class Half>
int wrong_patterns(int exponent_bits) {
  int wrong = 0;
  for (std::uint32_t bits = 0; bits <= 0xFFFF; ++bits) {
    Half half;
    half.bits = static_cast<std::uint16_t>(bits);
    const double value = static_cast<double>(static_cast<float>(half));
    const double wanted = meaning(half.bits, exponent_bits);
    const Half back{static_cast<float>(value)};
    if (std::isnan(wanted)) {
      wrong += !std::isnan(value) || back.bits != (exponent_bits == 5 ? 0x7E00 : 0x7FC0);
    } else {
      wrong += value != wanted || std::signbit(value) != std::signbit(wanted) || back.bits != half.bits;
    }
  }
  return wrong;
}

/// A float and its neighbours, and the same around the middle between two halves.
template <class Half>
int wrong_roundings(int fraction_bits, int least_exponent, double largest) {
  int wrong = 0;
  const auto check = [&](float value) {
    const float rounded = ddl::conformance::rounded_to(value, fraction_bits, least_exponent);
    const float wanted = std::abs(static_cast<double>(rounded)) > largest
                             ? std::copysign(std::numeric_limits<float>::infinity(), rounded)
                             : rounded;
    const float got = Half(value);
    wrong += got != wanted || std::signbit(got) != std::signbit(wanted);
  };
  for (std::uint32_t high = 0; high <= 0xFFFF; ++high) {
    for (const std::uint32_t low : {0x0000u, 0x0001u, 0x0FFFu, 0x1000u, 0x1001u, 0x2FFFu, 0x3000u, 0x3001u,
                                    0x7FFFu, 0x8000u, 0x8001u, 0xF000u, 0xFFFFu}) {
      const float value = ddl::detail::float_of_bits(high << 16 | low);
      if (!std::isnan(value)) check(value);
    }
  }
  return wrong;
}

}  // namespace

TEST_CASE("every 16-bit pattern converts to the float of its value, and back") {
  CHECK(wrong_patterns<float16>(5) == 0);
  CHECK(wrong_patterns<bfloat16>(8) == 0);
}

TEST_CASE("floats round to the nearest 16-bit one, ties to even") {
  CHECK(wrong_roundings<float16>(10, -14, 65504.0) == 0);
  CHECK(wrong_roundings<bfloat16>(7, -126, 3.3895313892515355e38) == 0);
  CHECK(float16(65519.0f).bits == 0x7BFF);
  CHECK(float16(65520.0f).bits == 0x7C00);
  CHECK(float16(0x1p-25f).bits == 0);  // a tie with 0, which is even
  CHECK(float16(0x1.8p-24f).bits == 2);
  CHECK(float16(-0.0f).bits == 0x8000);
}
