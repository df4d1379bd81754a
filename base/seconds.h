// A length of time.
#pragma once

namespace ddl {

/// A length of time in seconds, as it travels in messages: a number to compute with, and a type of its own so that
/// who decodes it can bound it (a length without bound overflows the clocks it is added to).
struct Seconds {
  double value = 0;

  constexpr Seconds() = default;
  constexpr Seconds(double seconds) : value(seconds) {}  // NOLINT(google-explicit-constructor): a number
  constexpr operator double() const { return value; }    // NOLINT(google-explicit-constructor): a number
};

/// The longest that is taken from a message, about 30 years.
inline constexpr double kMaxSeconds = 1e9;

}  // namespace ddl
