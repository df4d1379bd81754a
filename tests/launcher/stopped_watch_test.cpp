#include "launcher/process/stopped_watch.h"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "support/catch.h"

using namespace ddl::launcher;

TEST_CASE("a process is stopped for good when it was stopped at some looks in a row") {
  const pid_t child = ::fork();
  if (child == 0) {
    for (;;) ::pause();
  }
  int status = 0;
  StoppedWatch watch(child);
  const auto look = [&](int times) {
    bool found = false;
    for (int i = 0; i < times; ++i) found = watch.is_stopped_for_good();
    return found;
  };
  CHECK_FALSE(look(StoppedWatch::kLooks));
  ::kill(child, SIGSTOP);
  REQUIRE(::waitpid(child, &status, WUNTRACED) == child);
  CHECK_FALSE(look(StoppedWatch::kLooks - 1));
  ::kill(child, SIGCONT);
  REQUIRE(::waitpid(child, &status, WCONTINUED) == child);
  CHECK_FALSE(look(1));
  ::kill(child, SIGSTOP);
  REQUIRE(::waitpid(child, &status, WUNTRACED) == child);
  CHECK_FALSE(look(StoppedWatch::kLooks - 1));
  CHECK(look(1));
  ::kill(child, SIGKILL);
  REQUIRE(::waitpid(child, &status, 0) == child);
}
