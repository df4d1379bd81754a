#include "launcher/fleet/telling_lines.h"

#include <vector>

#include "base/text.h"

namespace ddl::launcher {
namespace {

bool is_routine(std::string_view line) {
  return line.empty() || line.starts_with("Warning: Permanently added") || line.starts_with("@@@") ||
         line.starts_with("debug1:") ||
         line.starts_with("** WARNING: connection is not using a post-quantum");
}

}  // namespace

std::string telling_lines(std::string_view text) {
  constexpr std::size_t kMostLines = 3;
  constexpr std::size_t kLongest = 300;
  std::vector<std::string> lines;
  for (std::string_view line : split(text, '\n')) {
    line = trim(line);
    if (is_routine(line)) continue;
    std::string printable;
    for (const char c : line.substr(0, kLongest)) {
      printable +=
          static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c;  // no escape sequences from afar
    }
    lines.push_back(std::move(printable));
  }
  if (lines.size() > kMostLines) lines.erase(lines.begin(), lines.end() - kMostLines);
  return join(lines, " / ");
}

}  // namespace ddl::launcher
