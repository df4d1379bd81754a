// Pipes and sockets of a test.
#pragma once

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>
#include <string>

#include "base/fd.h"
#include "support/catch.h"

namespace ddl::test {

inline FdPair test_pipe() {
  auto pipe = make_pipe();
  REQUIRE(pipe);
  return std::move(*pipe);
}

/// Both ends are non-blocking, for tests that handle both sides on one thread.
inline FdPair nonblocking_pipe() {
  FdPair pipe = test_pipe();
  REQUIRE(set_nonblocking(pipe.first.get(), true));
  REQUIRE(set_nonblocking(pipe.second.get(), true));
  return pipe;
}

inline FdPair test_socket_pair() {
  auto pair = make_socket_pair(SOCK_STREAM);
  REQUIRE(pair);
  return std::move(*pair);
}

inline void write_text(int fd, std::string_view text) { REQUIRE(write_all(fd, text.data(), text.size())); }

/// The bytes that a non-blocking descriptor has now.
inline std::string read_available(int fd) {
  std::string text;
  char buffer[65536];
  for (;;) {
    const ssize_t got = retry_eintr([&] { return ::read(fd, buffer, sizeof buffer); });
    if (got <= 0) return text;
    text.append(buffer, static_cast<std::size_t>(got));
  }
}

/// Everything up to the end of file of a blocking descriptor.
inline std::string read_to_end(int fd) { return read_available(fd); }

inline bool is_nonblocking(int fd) { return (::fcntl(fd, F_GETFL) & O_NONBLOCK) != 0; }

/// A write to a closed pipe is an error, not the end of the test, as in agent and head.
inline void ignore_sigpipe() { std::signal(SIGPIPE, SIG_IGN); }

}  // namespace ddl::test
