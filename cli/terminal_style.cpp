#include "cli/terminal_style.h"

#include <unistd.h>

#include "contract/environment.h"

namespace ddl::cli {

TerminalStyle TerminalStyle::for_fd(int fd, const launcher::Environment& environment) {
  const auto value = [&environment](const char* name) {
    const auto it = environment.find(name);
    return it == environment.end() ? std::string() : it->second;
  };
  const std::string term = value("TERM");
  return TerminalStyle(::isatty(fd) == 1 && !term.empty() && term != "dumb" &&
                       value(contract::env::kNoColor).empty());
}

std::string TerminalStyle::wrap(const char* attributes, std::string_view text) const {
  if (!colour_) return std::string(text);
  return "\x1b[" + std::string(attributes) + "m" + std::string(text) + "\x1b[0m";
}

}  // namespace ddl::cli
