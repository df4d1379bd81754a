#include "cli/reports/console.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/fd.h"
#include "support/catch.h"

using ddl::UniqueFd;
using ddl::cli::Console;

namespace {

const ddl::Environment kXterm{{"TERM", "xterm"}, {"NO_COLOR", "1"}};

/// The output of an action on standard error while that is a terminal with this number of columns. The terminal turns
/// "\n" into "\r\n".
template <class Action>
std::string on_terminal(unsigned short columns, Action action) {
  const UniqueFd terminal(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
  REQUIRE(terminal);
  REQUIRE(::grantpt(terminal.get()) == 0);
  REQUIRE(::unlockpt(terminal.get()) == 0);
  const winsize size{24, columns, 0, 0};
  REQUIRE(::ioctl(terminal.get(), TIOCSWINSZ, &size) == 0);
  {
    const UniqueFd end(::open(::ptsname(terminal.get()), O_RDWR | O_NOCTTY | O_CLOEXEC));
    REQUIRE(end);
    const UniqueFd before(::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3));
    REQUIRE(before);
    REQUIRE(::dup2(end.get(), STDERR_FILENO) == STDERR_FILENO);
    action();
    REQUIRE(::dup2(before.get(), STDERR_FILENO) == STDERR_FILENO);
    // Another descriptor of the terminal is still open, so that the output can be read.
    REQUIRE(::write(end.get(), "$", 1) == 1);
    std::string written;
    char c = 0;
    while (::read(terminal.get(), &c, 1) == 1 && c != '$') written += c;
    return written;
  }
}

}  // namespace

TEST_CASE("progress is shown on one line and then erased") {
  CHECK(on_terminal(80, [] {
          const Console console(kXterm);
          const auto progress = console.progress();
          REQUIRE(progress);
          progress("1 of 2 hosts");
          progress("2 of 2 hosts");
          progress("");
          progress("");
        }) == "ddlrun: 1 of 2 hosts\r\x1b[Kddlrun: 2 of 2 hosts\r\x1b[K");
}

TEST_CASE("a note replaces the progress line") {
  CHECK(on_terminal(80, [] {
          const Console console(kXterm);
          console.progress()("waiting");
          console.note("a host has failed");
          console.note("and another");
        }) == "ddlrun: waiting\r\x1b[Kddlrun: a host has failed\r\nddlrun: and another\r\n");
}

TEST_CASE("progress is cut to the terminal's width") {
  CHECK(on_terminal(20, [] { Console(kXterm).progress()(std::string(100, 'x')); }) == "ddlrun: xxxxxxxxxxx");
}

TEST_CASE("no progress is written to a file or to a terminal without escape sequences") {
  CHECK(on_terminal(80, [] { CHECK_FALSE(Console(ddl::Environment{{"TERM", "dumb"}}).progress()); }).empty());
  const UniqueFd null(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  const UniqueFd before(::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3));
  ::dup2(null.get(), STDERR_FILENO);
  const bool shown = static_cast<bool>(Console(kXterm).progress());
  ::dup2(before.get(), STDERR_FILENO);
  CHECK_FALSE(shown);
}
