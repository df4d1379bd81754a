// line_writer LINES LONGEST: a rank that writes pattern lines to standard output, split into writes at random
// positions.
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "e2e/programs/line_pattern.h"

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const char* const own = std::getenv("RANK");
  if (own == nullptr) return 2;
  const int rank = std::atoi(own);
  const int lines = std::atoi(argv[1]);
  const auto longest = static_cast<std::size_t>(std::atol(argv[2]));
  std::string text;
  for (int index = 0; index < lines; ++index) text += ddl::e2e::pattern_line(rank, index, longest);
  std::mt19937 random(static_cast<std::uint32_t>(rank));
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t bits = std::uniform_int_distribution<std::size_t>(4, 17)(random);
    const std::size_t piece = std::uniform_int_distribution<std::size_t>(1, std::size_t{1} << bits)(random);
    const ssize_t written = ::write(STDOUT_FILENO, text.data() + at, std::min(piece, text.size() - at));
    if (written < 0) return 1;
    at += static_cast<std::size_t>(written);
  }
  return 0;
}
