// Signals to ddlrun reach the ranks: those that end the job, those that do not, and those that stop it.
#include <fcntl.h>

#include <csignal>

#include "e2e/harness/fifo.h"
#include "e2e/harness/job.h"
#include "support/catch.h"

namespace ddl::e2e {
namespace {

using Catch::Matchers::Contains;

TEST_CASE("TERM, HUP and QUIT are forwarded unchanged and end the job with 128+signal", "[signal]") {
  const Scratch scratch;
  for (const auto& [signal, name] : {std::pair(SIGTERM, "TERM"), {SIGHUP, "HUP"}, {SIGQUIT, "QUIT"}}) {
    CAPTURE(name);
    // With this kill grace SIGKILL is never sent: the ranks end because of the forwarded signal.
    Job job(scratch, ddlrun({"-np", "2", "--kill-grace", "1000", program("signal_echo"), name, "0"}));
    job.wait_for("ready", 2);
    job.send(signal);
    CHECK(job.wait_and_require_nothing_left() == 128 + signal);
    for (const std::string rank : {"[0]", "[1]"}) {
      CHECK_THAT(job.out(), Contains(rank + "<stdout>:got SIG" + name + "\n"));
    }
    CHECK_THAT(job.err(), Contains("ended by SIG" + std::string(name)));
  }
}

TEST_CASE("USR1 and USR2 are forwarded and the job continues", "[signal]") {
  const Scratch scratch;
  Job job(scratch, ddlrun({"-np", "2", program("signal_echo"), "USR2", "0"}));
  job.wait_for("ready", 2);
  for (int time = 1; time <= 3; ++time) {
    job.send(SIGUSR1);
    job.wait_for("got SIGUSR1", 2 * time);
  }
  job.send(SIGUSR2);
  CHECK(job.wait_and_require_nothing_left() == 0);
  CHECK_THAT(job.out(), Contains("[0]<stdout>:got SIGUSR2") && Contains("[1]<stdout>:got SIGUSR2"));
}

TEST_CASE("a forwarded signal reaches the processes that a rank has started", "[signal]") {
  const Scratch scratch;
  Job job(scratch,
          ddlrun({"-np", "1", "sh", "-c", "trap : USR1; " + program("signal_echo") + " USR1 0; echo done"}));
  job.wait_for("ready");
  job.send(SIGUSR1);
  CHECK(job.wait_and_require_nothing_left() == 0);
  CHECK_THAT(job.out(), Contains("got SIGUSR1") && Contains("done"));
}

TEST_CASE("a second signal that ends the job kills the ranks at once", "[signal]") {
  const Scratch scratch;
  Job job(scratch, ddlrun({"-np", "2", "--kill-grace", "1000", program("signal_echo")}));
  job.wait_for("ready", 2);
  job.send(SIGTERM);
  job.wait_for("got SIGTERM", 2);
  job.send(SIGTERM);
  CHECK(job.wait_and_require_nothing_left() == 128 + SIGTERM);
  CHECK_THAT(job.err(), Contains("ranks 0, 1 were ended with SIGKILL"));
}

TEST_CASE("an ignored SIGHUP, as under nohup, stays ignored", "[signal]") {
  const Scratch scratch;
  Command command = ddlrun({"-np", "2", program("signal_echo"), "USR2", "0"});
  command.ignored_signals = {SIGHUP};
  Job job(scratch, command);
  job.wait_for("ready", 2);
  job.send(SIGHUP);
  job.send(SIGUSR1);  // sent later and received: so the hangup would have been received as well
  job.wait_for("got SIGUSR1", 2);
  job.send(SIGUSR2);
  CHECK(job.wait_and_require_nothing_left() == 0);
  CHECK_THAT(job.out(), !Contains("SIGHUP"));
}

TEST_CASE("a caller that ignores SIGCHLD, as daemons do, gets the job's exit code", "[signal]") {
  const Scratch scratch;
  Command command = ddlrun({"-np", "2", "sh", "-c", "[ $RANK = 1 ] && exit 3; exec sleep 1000"});
  command.ignored_signals = {SIGCHLD};
  Job job(scratch, command);
  CHECK(job.wait_and_require_nothing_left() == 3);
}

TEST_CASE("an ignored SIGINT, as in a shell's background list, stays ignored", "[signal]") {
  const Scratch scratch;
  Command command = ddlrun({"-np", "2", program("signal_echo"), "USR2", "0"});
  command.ignored_signals = {SIGINT};
  Job job(scratch, command);
  job.wait_for("ready", 2);
  job.send(SIGINT);
  job.send(SIGUSR2);
  CHECK(job.wait_and_require_nothing_left() == 0);
  CHECK_THAT(job.out(), !Contains("SIGTERM"));
}

TEST_CASE(
    "ranks start with the default action of every signal, but SIGINT is ignored if ddlrun's shell ignores it",
    "[signal]") {
  const Scratch scratch;
  Command command = ddlrun({"-np", "1", "sh", "-c", "grep -E 'Sig(Blk|Ign)' /proc/self/status"});
  const std::string unblocked = "SigBlk:\t0000000000000000\n";
  for (const auto& [interrupt, ignored] :
       {std::pair(SIGCONT, "SigIgn:\t0000000000000000\n"), {SIGINT, "SigIgn:\t0000000000000002\n"}}) {
    command.ignored_signals = {SIGHUP, SIGPIPE, SIGUSR1, interrupt};
    Job job(scratch, command);
    CHECK(job.wait_and_require_nothing_left() == 0);
    CHECK(job.out() == unblocked + ignored);
  }
}

TEST_CASE("SIGTSTP stops the ranks and ddlrun, and SIGCONT continues them", "[signal]") {
  const Scratch scratch;
  Fifo fifo(scratch, "stops");
  Job job(scratch, ddlrun({"-np", "2", program("stop_watcher"), fifo.path()}));
  job.wait_for("ready", 2);
  job.send(SIGTSTP);
  CHECK(fifo.wait_for("stopped\n", 2));
  CHECK(job.wait_until_stopped() == SIGSTOP);
  CHECK_THAT(fifo.read_now(), !Contains("continued"));
  job.send(SIGCONT);
  CHECK(fifo.wait_for("continued\n", 2));
  CHECK(job.wait_and_require_nothing_left() == 0);
}

}  // namespace
}  // namespace ddl::e2e
