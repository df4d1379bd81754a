#include "cli/reports/console.h"

#include <fcntl.h>
#include <stdlib.h>

#include "base/fd.h"
#include "support/catch.h"

using ddl::cli::TerminalStyle;

TEST_CASE("colour is used only for terminals that support it, and not with NO_COLOR") {
  // The master end of a pseudo terminal is a terminal for isatty(3).
  const ddl::UniqueFd terminal(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
  REQUIRE(terminal);
  const auto colour = [](int fd, const ddl::Environment& environment) {
    return TerminalStyle::for_fd(fd, environment).has_colour();
  };
  CHECK(colour(terminal.get(), {{"TERM", "xterm-256color"}}));
  CHECK(colour(terminal.get(), {{"TERM", "xterm"}, {"NO_COLOR", ""}}));
  CHECK_FALSE(colour(terminal.get(), {{"TERM", "xterm"}, {"NO_COLOR", "1"}}));
  CHECK_FALSE(colour(terminal.get(), {{"TERM", "dumb"}}));
  CHECK_FALSE(colour(terminal.get(), {}));
  const ddl::UniqueFd file(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  CHECK_FALSE(colour(file.get(), {{"TERM", "xterm"}}));
  // A line can be rewritten without colour.
  CHECK(TerminalStyle::understands_escapes(terminal.get(), {{"TERM", "xterm"}, {"NO_COLOR", "1"}}));
  CHECK_FALSE(TerminalStyle::understands_escapes(terminal.get(), {{"TERM", "dumb"}}));
  CHECK_FALSE(TerminalStyle::understands_escapes(file.get(), {{"TERM", "xterm"}}));
}

TEST_CASE("without colour text is unchanged") {
  CHECK(TerminalStyle(false).alarm("x") == "x");
  CHECK(TerminalStyle(true).alarm("x") == "\x1b[1;31mx\x1b[0m");
  CHECK(TerminalStyle(true).faint("x") == "\x1b[2mx\x1b[0m");
}
