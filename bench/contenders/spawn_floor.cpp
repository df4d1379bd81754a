// spawn_floor N PROGRAM [ARGUMENT...]: starts N copies and waits for them, each told its number in DDL_BENCH_RANK.
// A launcher that does nothing else: no launcher can be faster.
#include <spawn.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "bench/contenders/wait_for_all.h"

int main(int argc, char** argv) {
  const int count = argc > 2 ? std::atoi(argv[1]) : 0;
  if (count < 1) {
    std::fprintf(stderr, "usage: spawn_floor N PROGRAM [ARGUMENT...]\n");
    return 2;
  }
  for (int i = 0; i < count; ++i) {
    ::setenv("DDL_BENCH_RANK", std::to_string(i).c_str(), 1);
    pid_t pid = -1;
    if (::posix_spawn(&pid, argv[2], nullptr, nullptr, argv + 2, environ) != 0) {
      std::perror(argv[2]);
      return 127;
    }
  }
  return ddl::bench::wait_for_all();
}
