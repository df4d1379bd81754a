#include "cli/terminal_style.h"

#include <unistd.h>

#include "contract/environment.h"

namespace ddl::cli {

bool TerminalStyle::understands_escapes(int fd, const launcher::Environment& environment) {
  const std::string term = launcher::value_of(environment, "TERM");
  return ::isatty(fd) == 1 && !term.empty() && term != "dumb";
}

TerminalStyle TerminalStyle::for_fd(int fd, const launcher::Environment& environment) {
  return TerminalStyle(understands_escapes(fd, environment) &&
                       launcher::value_of(environment, contract::env::kNoColor).empty());
}

std::string TerminalStyle::wrap(const char* attributes, std::string_view text) const {
  if (!colour_) return std::string(text);
  return "\x1b[" + std::string(attributes) + "m" + std::string(text) + "\x1b[0m";
}

}  // namespace ddl::cli
