// The lines that line_writer writes and the tests expect: a function of the seed only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>

namespace ddl::e2e {

/// Line `index` of a rank, with its newline: "R.INDEX:" and then up to longest letters that depend on both numbers,
/// so that part of another line in it is detected.
inline std::string pattern_line(int rank, int index, std::size_t longest) {
  std::mt19937 random(static_cast<std::uint32_t>(rank * 1000003 + index));
  // The exponent of the length is uniformly distributed, so that short lines are as frequent as long ones.
  const std::size_t bits = std::uniform_int_distribution<std::size_t>(0, 18)(random);
  const std::size_t most = std::min(longest, std::size_t{1} << bits);
  const std::size_t length = std::uniform_int_distribution<std::size_t>(0, most)(random);
  std::string line = std::to_string(rank) + "." + std::to_string(index) + ":";
  for (std::size_t i = 0; i < length; ++i)
    line += static_cast<char>('a' + (i * 7 + static_cast<std::size_t>(rank * 3 + index)) % 26);
  return line + "\n";
}

}  // namespace ddl::e2e
