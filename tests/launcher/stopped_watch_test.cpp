#include "launcher/process/process_state.h"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "support/catch.h"

using namespace ddl::launcher;

TEST_CASE("a process is stopped for good when some probes in a row found it stopped") {
  const pid_t child = ::fork();
  if (child == 0) {
    for (;;) ::pause();
  }
  int status = 0;
  StoppedWatch watch(child);
  const auto probe = [&](int times) {
    bool found = false;
    for (int i = 0; i < times; ++i) found = watch.is_stopped_for_good();
    return found;
  };
  CHECK_FALSE(probe(StoppedWatch::kProbes));
  CHECK(watch.pause() == StoppedWatch::kPeriod);
  ::kill(child, SIGSTOP);
  REQUIRE(::waitpid(child, &status, WUNTRACED) == child);
  CHECK_FALSE(probe(StoppedWatch::kProbes - 1));
  CHECK(watch.pause() == StoppedWatch::kPeriodWhileStopped);
  ::kill(child, SIGCONT);
  REQUIRE(::waitpid(child, &status, WCONTINUED) == child);
  CHECK_FALSE(probe(1));
  CHECK(watch.pause() == StoppedWatch::kPeriod);
  ::kill(child, SIGSTOP);
  REQUIRE(::waitpid(child, &status, WUNTRACED) == child);
  CHECK_FALSE(probe(StoppedWatch::kProbes - 1));
  CHECK(probe(1));
  StoppedWatch patient(child, 3);
  CHECK_FALSE(patient.is_stopped_for_good());
  CHECK_FALSE(patient.is_stopped_for_good());
  CHECK(patient.is_stopped_for_good());
  ::kill(child, SIGKILL);
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK_FALSE(probe(StoppedWatch::kProbes));  // also if another process has its pid now
}
