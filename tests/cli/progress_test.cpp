// What the real program shows on a terminal while it waits for hosts.
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>

#include "base/command.h"
#include "base/fd.h"
#include "support/catch.h"
#include "support/temporary_directory.h"

using ddl::Child;
using ddl::Command;
using ddl::Deadline;
using ddl::UniqueFd;

namespace {

constexpr std::chrono::seconds kPatience(20);

/// Returns what the terminal shows until it shows the text, or until nothing more comes if the text is empty.
std::string read_until(const UniqueFd& terminal, const std::string& text) {
  std::string shown;
  const Deadline deadline = Deadline::after(kPatience);
  pollfd ready{terminal.get(), POLLIN, 0};
  std::array<char, 512> piece{};
  while ((text.empty() || shown.find(text) == std::string::npos) &&
         ::poll(&ready, 1, deadline.poll_milliseconds()) > 0) {
    const ssize_t count = ::read(terminal.get(), piece.data(), piece.size());
    if (count <= 0) break;  // EIO: the program has closed it
    shown.append(piece.data(), static_cast<std::size_t>(count));
  }
  return shown;
}

}  // namespace

TEST_CASE("--check-hosts shows on a terminal how many hosts have answered, and erases that line") {
  const ddl::test::TemporaryDirectory folder;
  const std::string gate = folder / "gate";
  REQUIRE(::mkfifo(gate.c_str(), 0600) == 0);
  const UniqueFd terminal(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
  REQUIRE(terminal);
  REQUIRE(::grantpt(terminal.get()) == 0);
  REQUIRE(::unlockpt(terminal.get()) == 0);
  UniqueFd end(::open(::ptsname(terminal.get()), O_RDWR | O_NOCTTY | O_CLOEXEC));
  REQUIRE(end);
  const UniqueFd out(::memfd_create("report", MFD_CLOEXEC));
  REQUIRE(out);
  // Of three hosts, b answers when the gate is opened.
  const std::string agent = "sh -c 'test $0 != b || read line <" + gate + "; exec \"$@\"' %h";
  Command command{.argv = {DDLRUN_PATH, "--check-hosts", "-H", "a,b,c", "--launch-agent", agent},
                  .variables = {{"TERM", "xterm"}},
                  .streams = {ddl::kNullStream, out.get(), end.get()}};
  auto child = Child::start(command);
  REQUIRE(child);
  end.reset();

  // On a busy machine there are lines before it that count fewer.
  const std::string line = "ddlrun: 2 of 3 hosts answered, waiting for b (";
  CHECK_THAT(read_until(terminal, line), Catch::Contains(line));
  const UniqueFd opened(::open(gate.c_str(), O_WRONLY | O_CLOEXEC));
  REQUIRE(::write(opened.get(), "\n", 1) == 1);
  CHECK_THAT(read_until(terminal, ""), Catch::EndsWith("\r\x1b[K"));
  CHECK(child->wait(Deadline::after(kPatience)));
  child->end(Deadline::after(std::chrono::seconds(0)));
  CHECK(child->exit_code() == 0);
}
