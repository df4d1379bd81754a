// What the pictures of a page have in common: their colours, which are the page's, texts and axes.
#pragma once

#include <cmath>
#include <string>
#include <string_view>

#include "base/printable_text.h"
#include "base/svg.h"

namespace ddl::report {

inline constexpr const char* kCompute = "var(--compute)";
inline constexpr const char* kWait = "var(--wait)";
inline constexpr const char* kMove = "var(--move)";
inline constexpr const char* kText = "var(--text)";
inline constexpr const char* kFaint = "var(--faint)";
inline constexpr const char* kGrid = "var(--grid)";
inline constexpr double kWidth = 830;

inline SvgText label(const char* anchor = "start", const char* fill = kText, double size = 12) {
  return {size, fill, anchor, false};
}

/// Not longer than so many bytes, without a part of a character at its end.
inline std::string shortened(const std::string& text, std::size_t most) {
  if (text.size() <= most) return text;
  const std::string_view start = std::string_view(text).substr(0, most - 1);
  return std::string(start.substr(0, start.size() - incomplete_utf8_tail(start))) + "…";
}

/// A step of an axis for about this many of them up to the value: 1, 2 or 5 times a power of ten.
inline double axis_step(double value, int steps) {
  if (value <= 0) return 1;
  const double power = std::pow(10, std::floor(std::log10(value / steps)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (value / (factor * power) <= steps) return factor * power;
  }
  return 10 * power;
}

}  // namespace ddl::report
