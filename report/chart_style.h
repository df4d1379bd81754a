// What the pictures of a page have in common: their colours, which are the page's, texts and axes.
#pragma once

#include <cmath>
#include <string>

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

inline std::string shortened(const std::string& text, std::size_t most) {
  return text.size() <= most ? text : text.substr(0, most - 1) + "…";
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
