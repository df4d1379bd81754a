// --launcher mpirun with the MPIs that are here: their ranks, ddlrun's promises.
#include <csignal>
#include <thread>

#include "base/text.h"
#include "contract/ddlrun.h"
#include "e2e/harness/job.h"
#include "support/catch.h"

namespace ddl::e2e {
namespace {

using Catch::Matchers::Contains;
using Words = std::vector<std::string>;

struct Mpi {
  std::string mpirun;
  std::string program;
  std::string rank0;  ///< how it begins rank 0's lines
};

std::vector<Mpi> mpis() {
  std::vector<Mpi> all;
#ifdef DDL_E2E_OPEN_MPI
  all.push_back({DDL_E2E_MPIEXEC, "mpi_program", "[1,0]<stdout>:"});
#endif
#ifdef DDL_E2E_MPIRUN_MPICH
  all.push_back({DDL_E2E_MPIRUN_MPICH, "mpich_program", "[0] "});
#endif
  return all;
}

Command by(const Mpi& mpi, Words options, const Words& command) {
  Words words = {"--launcher", "mpirun", "--mpirun", mpi.mpirun, "--oversubscribe"};
  words.insert(words.end(), options.begin(), options.end());
  words.insert(words.end(), command.begin(), command.end());
  return ddlrun(words);
}

TEST_CASE("programs of an MPI run by its mpirun, and its sums are right", "[mpirun]") {
  for (const Mpi& mpi : mpis()) {
    CAPTURE(mpi.mpirun);
    const Scratch scratch;
    Job job(scratch, by(mpi, {"-np", "3"}, {program(mpi.program), "sum"}));
    CHECK(job.wait_and_require_nothing_left() == 0);
    CHECK_THAT(job.out(), Contains(mpi.rank0 + "mpi rank 0 of 3: 0 wrong sums\n") &&
                              Contains("mpi rank 2 of 3: 0 wrong sums\n"));
  }
}

TEST_CASE("mpirun's ranks are bound, and know who they are", "[mpirun]") {
  for (const Mpi& mpi : mpis()) {
    CAPTURE(mpi.mpirun);
    const Scratch scratch;
    Job job(scratch, by(mpi, {"-np", "2", "-x", "LR=0.1", "--bind-to", "core"},
                        {"sh", "-c",
                         "echo rank $RANK $HOROVOD_RANK of $WORLD_SIZE $HOROVOD_SIZE local $LOCAL_RANK cross "
                         "${HOROVOD_CROSS_RANK-unknown} lr $LR at $MASTER_ADDR "
                         "cpus $(grep Cpus_allowed_list /proc/self/status)"}));
    CHECK(job.wait_and_require_nothing_left() == 0);
    for (const std::string rank : {"0", "1"})
      CHECK_THAT(job.out(), Contains("rank " + rank + " " + rank + " of 2 2 local " + rank +
                                     " cross unknown lr 0.1 at 127.0.0.1 cpus Cpus_allowed_list: "));
    // One core each, and not the same, where there are two.
    std::vector<std::string> cpus;
    for (const std::string_view line : split(trim(job.out()), '\n'))
      cpus.emplace_back(line.substr(line.find("list: ") + 6));
    REQUIRE(cpus.size() == 2);
    if (std::thread::hardware_concurrency() >= 2) CHECK(cpus[0] != cpus[1]);
  }
}

#ifdef DDL_E2E_OPEN_MPI
TEST_CASE("ddl_init does not wait for ever for a PMIx server that was stopped after the first context",
          "[mpirun]") {
  const Scratch scratch;
  // Not ddlrun's server: where that is stopped, its spawner ends the ranks. mpirun is this one's, and the rank's parent.
  Command command;
  // Into a file: what a rank prints just before it fails, mpirun may drop.
  const std::string said = scratch.path("said");
  command.argv = {DDL_E2E_MPIEXEC,        "-np", "1", "sh", "-c", "exec \"$0\" stopped >\"$1\"",
                  program("ddl_program"), said};
  command.environment = {{"OMPI_ALLOW_RUN_AS_ROOT", "1"}, {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"}};
  Job job(scratch, command);
  CHECK(job.wait() == 1);
  CHECK_THAT(bytes_of(said),
             Contains("init: bootstrap: PMIx_Fence: the PMIx server of this host has not answered for "));
}
#endif

TEST_CASE("a rank that fails under mpirun is named, ends the job, and its code is ddlrun's", "[mpirun]") {
  struct Failure {
    std::string how;
    int code;
    std::string said;
  };
  const std::vector<Failure> failures = {{"exit 5", 5, "exited with 5"},
                                         {"kill -SEGV $$", 128 + SIGSEGV, "was killed by SIGSEGV"}};
  for (const Mpi& mpi : mpis()) {
    for (const auto& [how, code, said] : failures) {
      CAPTURE(mpi.mpirun, how);
      const Scratch scratch;
      Job job(scratch, by(mpi, {"-np", "3"}, {"sh", "-c", "[ $RANK != 1 ] || " + how + "; exec sleep 1000"}));
      CHECK(job.wait_and_require_nothing_left() == code);
      CHECK_THAT(job.err(),
                 Contains("ddlrun: rank 1 on ") && Contains(said) && Contains("ddlrun: mpirun ended with "));
    }
    const Scratch scratch;
    Job missing(scratch, by(mpi, {"-np", "2"}, {"./no-such-program"}));
    CHECK(missing.wait_and_require_nothing_left() == contract::kNotFound);
    CHECK_THAT(missing.err(), Contains("could not be started: no such file"));
  }
}

TEST_CASE("MPI_Abort(3) under its own mpirun ends the job with 3", "[mpirun]") {
  for (const Mpi& mpi : mpis()) {
    CAPTURE(mpi.mpirun);
    const Scratch scratch;
    Job job(scratch, by(mpi, {"-np", "3"}, {program(mpi.program), "abort", "3"}));
    CHECK(job.wait_and_require_nothing_left() == 3);
  }
}

TEST_CASE("standard input reaches rank 0 alone, and ends", "[mpirun]") {
  for (const Mpi& mpi : mpis()) {
    CAPTURE(mpi.mpirun);
    const Scratch scratch;
    Command command = by(mpi, {"-np", "2"}, {"cat"});
    command.input = Command::Input::kPipe;
    Job job(scratch, command);
    job.write("hello\n");
    job.close_input();
    CHECK(job.wait_and_require_nothing_left() == 0);
    CHECK(job.out() == mpi.rank0 + "hello\n");
  }
}

TEST_CASE("nothing is left when ddlrun, mpirun or time ends the job", "[mpirun]") {
  const Words stay = {program("daemon_family"), "stay"};
  for (const Mpi& mpi : mpis()) {
    CAPTURE(mpi.mpirun);
    {
      const Scratch scratch;
      Job job(scratch, by(mpi, {"-np", "2", "--timeout", "2"}, stay));
      CHECK(job.wait_and_require_nothing_left() == contract::kTimeout);
    }
    {
      const Scratch scratch;
      Job job(scratch, by(mpi, {"-np", "2"}, stay));
      job.wait_for("ready", 2);
      job.send(SIGKILL);
      CHECK(job.wait_and_require_nothing_left() == 128 + SIGKILL);
    }
    {
      const Scratch scratch;
      Job job(scratch, by(mpi, {"-np", "2"}, stay));
      job.wait_for("ready", 2);
      job.send(SIGINT);
      CHECK(job.wait_and_require_nothing_left() == 128 + SIGINT);
    }
  }
}

TEST_CASE("--dry-run prints the line, and an mpirun that is not there is said", "[mpirun]") {
  for (const Mpi& mpi : mpis()) {
    CAPTURE(mpi.mpirun);
    const Scratch scratch;
    Job job(scratch, by(mpi, {"-np", "2", "--dry-run", "--cores-per-rank", "1"}, {"./a", "b c"}));
    CHECK(job.wait_and_require_nothing_left() == 0);
    CHECK_THAT(job.out(),
               Contains(mpi.mpirun + " ") && Contains(" --mpi-rank --cores-per-rank 1 -- ./a 'b c'\n"));
  }
  const Scratch scratch;
  Job missing(scratch, by({"no-such-mpirun", "", ""}, {"-np", "2"}, {"true"}));
  CHECK(missing.wait_and_require_nothing_left() == contract::kNotFound);
  CHECK_THAT(missing.err(), Contains("there is no no-such-mpirun in PATH"));
  Job wrong(scratch, by({"/bin/echo", "", ""}, {"-np", "2"}, {"true"}));
  CHECK(wrong.wait_and_require_nothing_left() == contract::kStartFailure);
  CHECK_THAT(wrong.err(), Contains("it is neither Open MPI's, PRRTE's nor hydra's"));
}

}  // namespace
}  // namespace ddl::e2e
