// The two 16-bit floating-point types of libddl: IEEE 754 binary16 and bfloat16, for storage and for sending.
// Arithmetic is float's: both convert to float exactly, and from float rounding to the nearest, ties to even.
#ifndef DDL_HALF_HPP
#define DDL_HALF_HPP

#include <cstdint>
#include <cstring>

namespace ddl {

namespace detail {

inline std::uint32_t bits_of_float(float value) noexcept {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}
inline float float_of_bits(std::uint32_t bits) noexcept {
  float value = 0;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

}  // namespace detail

/// DDL_FLOAT16: 1 sign bit, 5 exponent bits, 10 fraction bits; the largest value is 65504. NaN becomes 0x7E00.
struct float16 {
  std::uint16_t bits = 0;

  float16() = default;
  explicit float16(float value) noexcept : bits(round(value)) {}

  // NOLINTNEXTLINE(google-explicit-constructor): it loses nothing
  operator float() const noexcept {
    const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000u) << 16;
    const std::uint32_t rest = bits & 0x7FFFu;
    if (rest >= 0x7C00u) return detail::float_of_bits(sign | 0x7F800000u | (rest & 0x3FFu) << 13);
    // Without a hidden bit below 2^-14: a multiple of 2^-24. No step makes a float that a flush to zero would change.
    const std::uint32_t magnitude = rest < 0x400u ? detail::bits_of_float(static_cast<float>(rest) * 0x1p-24f)
                                                  : (rest << 13) + 0x38000000u;
    return detail::float_of_bits(sign | magnitude);
  }

 private:
  static std::uint16_t round(float value) noexcept {
    const std::uint32_t all = detail::bits_of_float(value);
    const std::uint32_t sign = all >> 16 & 0x8000u;
    const std::uint32_t magnitude = all & 0x7FFFFFFFu;
    std::uint32_t half = 0;
    if (magnitude > 0x7F800000u) return 0x7E00u;
    if (magnitude >= 0x477FF000u) {
      half = 0x7C00u;  // 65520 and more round to infinity
    } else if (magnitude < 0x38800000u) {
      // Below 2^-14: adding 0.5 puts the value's unit where a float's last bit is, and the addition rounds.
      half = detail::bits_of_float(detail::float_of_bits(magnitude) + 0.5f) - 0x3F000000u;
    } else {
      half = (magnitude - 0x38000000u + 0xFFFu + (magnitude >> 13 & 1u)) >> 13;
    }
    return static_cast<std::uint16_t>(sign | half);
  }
};

/// DDL_BFLOAT16: the upper half of a float. NaN becomes 0x7FC0.
struct bfloat16 {
  std::uint16_t bits = 0;

  bfloat16() = default;
  explicit bfloat16(float value) noexcept : bits(round(value)) {}

  // NOLINTNEXTLINE(google-explicit-constructor): it loses nothing
  operator float() const noexcept { return detail::float_of_bits(static_cast<std::uint32_t>(bits) << 16); }

 private:
  static std::uint16_t round(float value) noexcept {
    const std::uint32_t all = detail::bits_of_float(value);
    if ((all & 0x7FFFFFFFu) > 0x7F800000u) return 0x7FC0u;
    return static_cast<std::uint16_t>((all + 0x7FFFu + (all >> 16 & 1u)) >> 16);
  }
};

static_assert(sizeof(float16) == 2 && sizeof(bfloat16) == 2, "they are sent as 16 bits");

}  // namespace ddl

#endif  // DDL_HALF_HPP
