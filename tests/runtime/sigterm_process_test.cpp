// Which senders' SIGTERM a process of an elastic job survives.
#include "runtime/src/common/interruption.h"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>

#include "support/catch.h"

using namespace ddl::runtime;

namespace {

enum class Target { kProcess, kForkedChild };

/// Whether a process that may survive SIGTERM does, if a process of this name sends it.
bool survives(const char* sender_name, Target target) {
  std::array<int, 2> said{}, all_ended{};
  REQUIRE(::pipe(said.data()) == 0);
  REQUIRE(::pipe(all_ended.data()) == 0);
  const pid_t victim = ::fork();
  if (victim == 0) {
    sigset_t blocked, none;
    ::sigemptyset(&none);
    ::sigemptyset(&blocked);
    ::sigaddset(&blocked, SIGTERM);
    ::sigprocmask(SIG_BLOCK, &blocked, nullptr);
    std::signal(SIGTERM, SIG_DFL);
    survive_sigterm_of_slurm();
    if (target == Target::kForkedChild && ::fork() != 0) {
      ::close(said[1]);
      ::wait(nullptr);
      ::_exit(0);
    }
    const pid_t own = ::getpid();
    if (::write(said[1], &own, sizeof own) != sizeof own) ::_exit(1);
    ::sigsuspend(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    if (::write(said[1], "s", 1) != 1) ::_exit(1);
    ::_exit(0);
  }
  ::close(said[1]);
  pid_t receiver = 0;
  REQUIRE(::read(said[0], &receiver, sizeof receiver) == sizeof receiver);
  const pid_t sender = ::fork();
  if (sender == 0) {
    ::close(all_ended[1]);
    ::prctl(PR_SET_NAME, sender_name);
    ::kill(receiver, SIGTERM);
    char end = 0;
    ::_exit(::read(all_ended[0], &end, 1) == 0 ? 0 : 1);
  }
  char letter = 0;
  const bool survived = ::read(said[0], &letter, 1) == 1;
  for (const int fd : {said[0], all_ended[0], all_ended[1]}) ::close(fd);
  ::waitpid(sender, nullptr, 0);
  int status = 0;
  ::waitpid(victim, &status, 0);
  if (target == Target::kProcess) CHECK((survived ? WIFEXITED(status) : WTERMSIG(status) == SIGTERM));
  return survived;
}

}  // namespace

TEST_CASE("SIGTERM of Slurm's step daemon is survived, and that of others ends the process") {
  CHECK(survives("slurmstepd", Target::kProcess));
  CHECK_FALSE(survives("slurmstepd2", Target::kProcess));
  CHECK_FALSE(survives("ddl-spawner", Target::kProcess));
  CHECK_FALSE(survives("slurmstepd", Target::kForkedChild));
}
