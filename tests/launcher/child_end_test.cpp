#include "launcher/process/child.h"

#include "support/processes.h"

using namespace ddl::launcher;
using namespace ddl::test;

TEST_CASE("a child's end is described in words, and it is reaped") {
  const pid_t exited = fork_process([] { ::_exit(3); });
  CHECK(describe_child_end(exited) == "exited with 3");
  CHECK_FALSE(exists(exited));

  const pid_t killed = fork_process([] { ::raise(SIGKILL); });
  CHECK(describe_child_end(killed) == "was killed by SIGKILL");
  CHECK_FALSE(exists(killed));
}

TEST_CASE("a child that is only about to end is waited for") {
  Readiness ready;
  const auto go = test_pipe();
  const pid_t pid = fork_process([&] {
    ready.report();
    char byte;
    (void)!::read(go.first.get(), &byte, 1);
    ::_exit(0);
  });
  ready.wait_for(1);
  REQUIRE(::write(go.second.get(), "x", 1) == 1);
  CHECK(describe_child_end(pid) == "exited with 0");
}

TEST_CASE("a child that goes on living has stopped answering") {
  const pid_t pid = fork_process(sleep_for_ever);
  CHECK(describe_child_end(pid) == "stopped answering");
  CHECK(exists(pid));
  REQUIRE(::kill(pid, SIGKILL) == 0);
  reap(pid);
}
