// Colours for a terminal, and nothing for a file.
#pragma once

#include <string>
#include <string_view>

#include "launcher/plan/rank_environment.h"

namespace ddl::cli {

/// Wraps text in ANSI attributes, or leaves it alone.
class TerminalStyle {
 public:
  explicit TerminalStyle(bool colour) : colour_(colour) {}
  /// Colour if fd is a terminal that understands it (TERM is set and not "dumb") and NO_COLOR is empty or unset
  /// (https://no-color.org).
  static TerminalStyle for_fd(int fd, const launcher::Environment& environment);

  /// Whether fd is a terminal that understands ANSI's sequences, also where colour is not wanted.
  static bool understands_escapes(int fd, const launcher::Environment& environment);

  bool has_colour() const { return colour_; }
  std::string alarm(std::string_view text) const { return wrap("1;31", text); }  ///< bold red
  std::string strong(std::string_view text) const { return wrap("1", text); }    ///< bold
  std::string faint(std::string_view text) const { return wrap("2", text); }

 private:
  std::string wrap(const char* attributes, std::string_view text) const;
  bool colour_;
};

}  // namespace ddl::cli
