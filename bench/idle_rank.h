// Keeps a program of the launch benchmark initialised and idle until the harness releases it.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

namespace ddl::bench {

/// A held rank prints this when it is idle.
inline constexpr char kHeldWord[] = "bench-rank-is-idle";

/// With "--hold PATH" on the command line: prints kHeldWord and blocks in a read of the pipe at PATH until its last
/// writer has closed it. Otherwise returns at once. False if the pipe could not be read.
inline bool hold_if_asked(int argc, char** argv) {
  if (argc != 3 || std::strcmp(argv[1], "--hold") != 0) return true;
  const int pipe = ::open(argv[2], O_RDONLY | O_CLOEXEC);
  if (pipe < 0) {
    std::perror(argv[2]);
    return false;
  }
  std::puts(kHeldWord);
  std::fflush(stdout);
  char byte;
  const bool is_released = ::read(pipe, &byte, 1) == 0;
  ::close(pipe);
  return is_released;
}

}  // namespace ddl::bench
