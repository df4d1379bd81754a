#include "launcher/process/process_state.h"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "support/catch.h"

using namespace ddl::launcher;

TEST_CASE("a process is stopped between SIGSTOP and SIGCONT, and not when it waits or is gone") {
  CHECK_FALSE(is_stopped(::getpid()));
  const pid_t child = ::fork();
  if (child == 0) {
    for (;;) ::pause();
  }
  CHECK_FALSE(is_stopped(child));
  ::kill(child, SIGSTOP);
  int status = 0;
  REQUIRE(::waitpid(child, &status, WUNTRACED) == child);
  CHECK(is_stopped(child));
  ::kill(child, SIGCONT);
  REQUIRE(::waitpid(child, &status, WCONTINUED) == child);
  CHECK_FALSE(is_stopped(child));
  ::kill(child, SIGKILL);
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK_FALSE(is_stopped(child));
}
