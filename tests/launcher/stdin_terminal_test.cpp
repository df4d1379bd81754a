// Standard input that is a terminal: read in the foreground only. Each test runs in a session of its own that has a
// pseudo-terminal as its controlling one.
#include <pty.h>
#include <sys/ioctl.h>

#include <optional>

#include "launcher/head/io_forwarding.h"
#include "support/processes.h"

using namespace ddl::launcher;
using namespace ddl::test;

namespace {

struct Terminal {
  ddl::UniqueFd keyboard;  ///< what is written here is typed
  ddl::UniqueFd terminal;
};

Terminal open_terminal() {
  int master = -1;
  int slave = -1;
  REQUIRE(::openpty(&master, &slave, nullptr, nullptr, nullptr) == 0);
  return {ddl::UniqueFd(master), ddl::UniqueFd(slave)};
}

/// Makes the calling process the leader of a session on that terminal, in its foreground.
bool take_terminal(int terminal) { return ::setsid() > 0 && ::ioctl(terminal, TIOCSCTTY, 0) == 0; }

/// Makes the other group of the session, or the caller's own again, the foreground.
bool give_foreground(int terminal, pid_t group) {
  std::signal(SIGTTOU, SIG_IGN);  // tcsetpgrp from the background
  return ::tcsetpgrp(terminal, group) == 0;
}

/// Runs a reader on the terminal and returns the bytes it got, with "|" at the end of file. In the forked process.
class Reading {
 public:
  explicit Reading(int terminal) {
    std::signal(SIGTTIN, SIG_IGN);  // as in ddlrun
    reader.emplace(loop, terminal,
                   StdinReader::Handlers{[this](std::string&& piece) {
                                           bytes += piece;
                                           loop.stop();
                                         },
                                         [this] {
                                           bytes += "|";
                                           loop.stop();
                                         }});
  }
  /// Handles what is ready now.
  void run_ready() {
    loop.post([this] { loop.post([this] { loop.stop(); }); });
    loop.run();
  }
  /// Runs until something was read.
  void run_until_read() {
    const auto watchdog = loop.after(std::chrono::seconds(20), [] { ::_exit(99); });
    loop.run();
  }

  EventLoop loop;
  std::string bytes;
  std::optional<StdinReader> reader;
};

/// Which step of a forked process failed; 0: none.
int run_in_session(const Terminal& terminal, const std::function<int()>& body) {
  const pid_t pid = fork_process([&] {
    if (!take_terminal(terminal.terminal.get())) ::_exit(100);
    ::_exit(body());
  });
  const int status = reap(pid);
  INFO("wait status " << status);
  REQUIRE(WIFEXITED(status));
  return WEXITSTATUS(status);
}

void type(const Terminal& terminal, std::string_view line) {
  if (!ddl::write_all(terminal.keyboard.get(), line.data(), line.size())) ::_exit(98);
}

}  // namespace

TEST_CASE("a terminal is read in its foreground, and left blocking") {
  const Terminal terminal = open_terminal();
  const int fd = terminal.terminal.get();
  CHECK(run_in_session(terminal, [&] {
          Reading reading(fd);
          type(terminal, "hello\n");
          reading.run_until_read();
          if (reading.bytes != "hello\n") return 1;
          type(terminal, "\x04");  // ^D
          reading.run_until_read();
          if (reading.bytes != "hello\n|") return 2;
          return is_nonblocking(fd) ? 3 : 0;
        }) == 0);
}

TEST_CASE("a terminal is not read in the background; typed text is left to the shell") {
  const Terminal terminal = open_terminal();
  const int fd = terminal.terminal.get();
  CHECK(run_in_session(terminal, [&] {
          // This process is the shell; the reader is its background job.
          Readiness ready;
          const pid_t job = fork_process([&] {
            if (::setpgid(0, 0) != 0) ::_exit(1);
            Reading reading(fd);
            type(terminal, "for the shell\n");
            reading.run_ready();
            reading.run_ready();
            if (!reading.bytes.empty()) ::_exit(2);
            reading.reader->refund(1);  // neither of these makes it read
            reading.reader->recheck_terminal();
            reading.run_ready();
            ::_exit(reading.bytes.empty() ? 0 : 3);
          });
          const int status = reap(job);
          if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) return 10 + WEXITSTATUS(status);
          char buffer[64];
          const ssize_t got = ::read(fd, buffer, sizeof buffer);
          return std::string(buffer, static_cast<std::size_t>(std::max<ssize_t>(got, 0))) == "for the shell\n"
                     ? 0
                     : 20;
        }) == 0);
}

TEST_CASE("a background reader reads again in the foreground, and stops in the background") {
  const Terminal terminal = open_terminal();
  const int fd = terminal.terminal.get();
  CHECK(run_in_session(terminal, [&] {
          const pid_t shell = ::getpgrp();
          const pid_t job = fork_process([&] {
            if (::setpgid(0, 0) != 0) ::_exit(1);
            Reading reading(fd);
            type(terminal, "one\n");
            reading.run_ready();
            if (!reading.bytes.empty()) ::_exit(2);

            if (!give_foreground(fd, ::getpgrp())) ::_exit(3);
            reading.reader->recheck_terminal();
            reading.run_until_read();
            if (reading.bytes != "one\n") ::_exit(4);

            // Moved to the background while it waits, without a signal: it notices that before it reads.
            if (!give_foreground(fd, shell)) ::_exit(5);
            type(terminal, "two\n");
            reading.run_ready();
            reading.run_ready();
            if (reading.bytes != "one\n") ::_exit(6);

            // And back, as by "fg" for a job that was not stopped: there is no signal either.
            if (!give_foreground(fd, ::getpgrp())) ::_exit(7);
            reading.run_until_read();
            ::_exit(reading.bytes == "one\ntwo\n" ? 0 : 8);
          });
          const int status = reap(job);
          return WIFEXITED(status) ? WEXITSTATUS(status) : 50;
        }) == 0);
}
