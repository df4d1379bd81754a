#include "launcher/process/child.h"

#include <sys/resource.h>

#include "support/processes.h"

using namespace ddl::launcher;
using namespace ddl::test;

namespace {

bool is_open(int fd) { return ::fcntl(fd, F_GETFD) != -1; }

}  // namespace

TEST_CASE("a forked process keeps 0, 1, 2 and the named descriptors, and closes all others, however high") {
  const auto kept = test_pipe();
  const auto closed = test_pipe();
  rlimit limit{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &limit) == 0);
  const int high = ::fcntl(closed.first.get(), F_DUPFD, static_cast<int>(limit.rlim_cur) - 1);
  REQUIRE(high >= 0);

  const auto in_child = [&](int keep, int also_keep) {
    return WEXITSTATUS(reap(fork_process([&] {
      close_all_fds_but(keep, also_keep);
      int state = 0;
      for (const int fd : {0, 1, 2}) state += is_open(fd) ? 0 : 64;
      if (is_open(kept.first.get())) state += 1;
      if (is_open(kept.second.get())) state += 2;
      if (is_open(closed.first.get()) || is_open(closed.second.get()) || is_open(high)) state += 4;
      ::_exit(state);
    })));
  };
  CHECK(in_child(kept.first.get(), kept.second.get()) == 3);
  CHECK(in_child(kept.second.get(), -1) == 2);
  CHECK(in_child(-1, -1) == 0);
  ::close(high);
}
