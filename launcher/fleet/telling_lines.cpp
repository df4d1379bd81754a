#include "launcher/fleet/telling_lines.h"

#include <vector>

#include "base/text.h"
#include "launcher/output/stderr_tail.h"
#include "launcher/output/utf8.h"

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
    line = line.substr(0, kLongest);
    if (line.size() == kLongest) line.remove_suffix(incomplete_utf8_tail(line));
    lines.push_back(printable_line(line));  // no escape sequences from afar
  }
  if (lines.size() > kMostLines) lines.erase(lines.begin(), lines.end() - kMostLines);
  return join(lines, " / ");
}

}  // namespace ddl::launcher
