// The 8-bit floating-point types of libddl: for storage and for sending. Arithmetic is float's: they convert to float
// exactly, and from float rounding to the nearest, ties to even. Two are those of the Open Compute Project's "8-bit
// Floating Point Specification", which NVIDIA's GPUs have, and AMD's from gfx950 on; the FNUZ types, without infinity
// and without negative zero, are those of AMD's gfx94x.
#ifndef DDL_FLOAT8_HPP
#define DDL_FLOAT8_HPP

#include <cstdint>

#include "ddl/half.hpp"

namespace ddl {

namespace detail {

// What tells the formats apart: their bits are a sign, an exponent and a fraction.

struct E4M3FN {
  static constexpr std::uint32_t fraction_bits = 3, bias = 7;
  static constexpr std::uint32_t largest = 0x7E;  ///< the bits of the largest value
  static constexpr std::uint32_t overflow =
      0x7F;  ///< and of what does not fit: infinity, or NaN where there is none
  static constexpr std::uint32_t nan = 0x7F;
  static constexpr bool has_infinity = false, has_negative_zero = true;
};
struct E5M2 {
  static constexpr std::uint32_t fraction_bits = 2, bias = 15;
  static constexpr std::uint32_t largest = 0x7B;
  static constexpr std::uint32_t overflow = 0x7C;
  static constexpr std::uint32_t nan = 0x7F;
  static constexpr bool has_infinity = true, has_negative_zero = true;
};
struct E4M3FNUZ {
  static constexpr std::uint32_t fraction_bits = 3, bias = 8;
  static constexpr std::uint32_t largest = 0x7F;
  static constexpr std::uint32_t overflow = 0x80;
  static constexpr std::uint32_t nan = 0x80;
  static constexpr bool has_infinity = false, has_negative_zero = false;
};
struct E5M2FNUZ {
  static constexpr std::uint32_t fraction_bits = 2, bias = 16;
  static constexpr std::uint32_t largest = 0x7F;
  static constexpr std::uint32_t overflow = 0x80;
  static constexpr std::uint32_t nan = 0x80;
  static constexpr bool has_infinity = false, has_negative_zero = false;
};

template <class Format>
struct Float8 {
  std::uint8_t bits = 0;

  Float8() = default;
  explicit Float8(float value) noexcept : bits(round(value)) {}

  // NOLINTNEXTLINE(google-explicit-constructor): it loses nothing
  operator float() const noexcept {
    const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x80u) << 24;
    const std::uint32_t rest = bits & 0x7Fu;
    if (Format::has_negative_zero ? rest > Format::largest : bits == Format::nan) {
      const bool is_infinite = Format::has_infinity && rest == Format::overflow;
      return float_of_bits(sign | (is_infinite ? 0x7F800000u : 0x7FC00000u));
    }
    constexpr std::uint32_t shift = 23 - Format::fraction_bits;
    // Without a hidden bit below the least normal value: a multiple of the least value.
    const std::uint32_t magnitude =
        rest < 1u << Format::fraction_bits
            ? bits_of_float(static_cast<float>(rest) *
                            float_of_bits((1 + rebias - Format::fraction_bits) << 23))
            : (rest << shift) + (rebias << 23);
    return float_of_bits(sign | magnitude);
  }

 private:
  /// What is added to an exponent to make it a float's.
  static constexpr std::uint32_t rebias = 127 - Format::bias;

  static std::uint8_t round(float value) noexcept {
    const std::uint32_t all = bits_of_float(value);
    const std::uint32_t sign = all >> 24 & 0x80u;
    const std::uint32_t magnitude = all & 0x7FFFFFFFu;
    if (magnitude > 0x7F800000u) return Format::nan;
    std::uint32_t rest = 0;
    if (magnitude < (1 + rebias) << 23) {
      // Below the least normal value: this number's last bit, as a float, is the unit there, and the addition rounds.
      constexpr std::uint32_t anchor = (24 + rebias - Format::fraction_bits) << 23;
      rest = bits_of_float(float_of_bits(magnitude) + float_of_bits(anchor)) - anchor;
    } else {
      constexpr std::uint32_t shift = 23 - Format::fraction_bits;
      rest = (magnitude - (rebias << 23) + (1u << (shift - 1)) - 1 + (magnitude >> shift & 1u)) >> shift;
    }
    if (rest > Format::largest && !Format::has_infinity) return Format::nan;
    if (rest > Format::largest) rest = Format::overflow;
    if (rest == 0 && !Format::has_negative_zero) return 0;
    return static_cast<std::uint8_t>(sign | rest);
  }
};

}  // namespace detail

/// DDL_FLOAT8_E4M3FN: 1 sign bit, 4 exponent bits, 3 fraction bits; the largest value is 448. There is no infinity:
/// what does not fit becomes NaN, 0x7F.
using float8_e4m3fn = detail::Float8<detail::E4M3FN>;
/// DDL_FLOAT8_E5M2: the upper half of a float16; the largest value is 57344. NaN becomes 0x7F.
using float8_e5m2 = detail::Float8<detail::E5M2>;
/// DDL_FLOAT8_E4M3FNUZ: the largest value is 240. What does not fit becomes NaN, 0x80; zero has no sign.
using float8_e4m3fnuz = detail::Float8<detail::E4M3FNUZ>;
/// DDL_FLOAT8_E5M2FNUZ: the largest value is 57344. What does not fit becomes NaN, 0x80; zero has no sign.
using float8_e5m2fnuz = detail::Float8<detail::E5M2FNUZ>;

static_assert(sizeof(float8_e4m3fn) == 1 && sizeof(float8_e5m2) == 1, "they are sent as 8 bits");

}  // namespace ddl

#endif  // DDL_FLOAT8_HPP
