// --launcher mpirun with the installed MPIs: what ddlrun guarantees also holds for their ranks.
#include <unistd.h>

#include <csignal>

#include "base/cpu_set.h"
#include "base/text.h"
#include "contract/ddlrun.h"
#include "e2e/harness/job.h"
#include "support/catch.h"
#include "support/skip.h"

namespace ddl::e2e {
namespace {

using Catch::Matchers::Contains;
using Words = std::vector<std::string>;

struct Mpi {
  std::string mpirun;
  std::string program;
  std::string rank0;  ///< the prefix of rank 0's lines
};

/// Open MPI 5 writes a space after its tag.
std::string without_space_after_tag(const std::string& out) {
  std::string text = out;
  for (std::size_t at = 0; (at = text.find(">: ", at)) != std::string::npos;) text.erase(at + 2, 1);
  return text;
}

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
    CHECK_THAT(without_space_after_tag(job.out()), Contains(mpi.rank0 + "mpi rank 0 of 3: 0 wrong sums\n") &&
                                                       Contains("mpi rank 2 of 3: 0 wrong sums\n"));
  }
}

TEST_CASE("ranks of hydra's mpirun are told that they use PMI-1, unless the user has chosen", "[mpirun]") {
  const auto told = [](const Mpi& mpi, const std::string& option) {
    const Scratch scratch;
    Words options = {"-np", "1"};
    if (!option.empty()) options.insert(options.end(), {"-x", option});
    Job job(scratch, by(mpi, options, {"sh", "-c", "echo version ${MPIR_CVAR_PMI_VERSION-unset}."}));
    CHECK(job.wait_and_require_nothing_left() == 0);
    return job.out().substr(job.out().find("version "));
  };
  for (const Mpi& mpi : mpis()) {
    CAPTURE(mpi.mpirun);
    const bool is_hydra = mpi.program == "mpich_program";
    CHECK(told(mpi, "") == std::string("version ") + (is_hydra ? "1" : "unset") + ".\n");
    CHECK(told(mpi, "MPIR_CVAR_PMI_VERSION=2") == "version 2.\n");
    CHECK(told(mpi, "MPICH_PMI_VERSION=2") == "version unset.\n");
  }
}

/// The MPI's own mpirun with two ranks.
Words plain_mpirun(const Mpi& mpi, const Words& command) {
  Words words = {mpi.mpirun, "-np", "2"};
  if (mpi.program == "mpi_program") words.emplace_back("--oversubscribe");
  if (mpi.program == "mpi_program" && ::geteuid() == 0) words.emplace_back("--allow-run-as-root");
  words.insert(words.end(), command.begin(), command.end());
  return words;
}

TEST_CASE("an mpirun that a rank starts, itself or in a script, starts its own ranks", "[mpirun]") {
  for (const Mpi& mpi : mpis()) {
    CAPTURE(mpi.mpirun);
    const Scratch scratch;
    const Words mpirun = plain_mpirun(mpi, {program(mpi.program), "sum"});
    Words words = {"-np", "1"};
    words.insert(words.end(), mpirun.begin(), mpirun.end());
    Job itself(scratch, ddlrun(words));
    CHECK(itself.wait_and_require_nothing_left() == 0);
    CHECK_THAT(itself.out(),
               Contains("mpi rank 0 of 2: 0 wrong sums\n") && Contains("mpi rank 1 of 2: 0 wrong sums\n"));

    Job script(scratch, ddlrun({"-np", "2", "--oversubscribe", "sh", "-c", join(mpirun, " ") + "; exit $?"}));
    CHECK(script.wait_and_require_nothing_left() == 0);
    for (const char* const outer : {"[0]<stdout>:", "[1]<stdout>:"})
      CHECK_THAT(script.out(), Contains(std::string(outer) + "mpi rank 1 of 2: 0 wrong sums\n"));
  }
}

TEST_CASE("a ddlrun that a rank starts makes a job of its own, also by mpirun", "[mpirun]") {
  for (const Mpi& mpi : mpis()) {
    CAPTURE(mpi.mpirun);
    for (const bool by_mpirun : {false, true}) {
      CAPTURE(by_mpirun);
      const Scratch scratch;
      const Command inner = by_mpirun ? by(mpi, {"-np", "2"}, {program(mpi.program), "sum"})
                                      : ddlrun({"-np", "2", "--oversubscribe", program(mpi.program), "sum"});
      Job job(scratch, ddlrun({"-np", "1", "sh", "-c", join(inner.argv, " ") + "; exit $?"}));
      CHECK(job.wait_and_require_nothing_left() == 0);
      CHECK_THAT(job.out(),
                 Contains("mpi rank 0 of 2: 0 wrong sums\n") && Contains("mpi rank 1 of 2: 0 wrong sums\n"));
      CHECK(job.err() ==
            "ddlrun: this is rank 0 of another ddlrun; the ranks of this one are a job of their own, without "
            "the "
            "variables of that\n");
    }
  }
}

#ifdef DDL_E2E_MPIRUN_MPICH
TEST_CASE("libddl notices that its variables are those of two launchers", "[mpirun]") {
  const std::string inner = std::string(DDL_E2E_MPIRUN_MPICH) + " -np 2 " + program("ddl_program") + " sum";
  const Scratch scratch;
  Job job(scratch, ddlrun({"-np", "1", "sh", "-c", inner + "; exit $?"}));
  CHECK(job.wait_and_require_nothing_left() != 0);
  CHECK_THAT(job.out(),
             Contains("the variables of two launchers: this is rank 0 of 1 by PMIX_RANK, and rank 1 of 2 "
                      "by PMI_RANK; remove those of the outer one, as in env -u PMIX_NAMESPACE -u "
                      "PMIX_RANK mpirun ..\n"));
  Job as_it_says(scratch, ddlrun({"-np", "1", "sh", "-c", "env -u PMIX_NAMESPACE -u PMIX_RANK " + inner}));
  CHECK(as_it_says.wait_and_require_nothing_left() == 0);
  CHECK_THAT(as_it_says.out(), Contains("round 1: ddl rank 1 of 2, local 1 of 2, by pmi: 0 wrong sums\n"));
}
#endif

TEST_CASE("mpirun runs without HOME and an entry in passwd", "[mpirun]") {
  for (const Mpi& mpi : mpis()) {
    CAPTURE(mpi.mpirun);
    const Scratch scratch;
    const std::vector<std::string> unknown_user = {
        "unshare", "--user", "--map-user=54321", "--map-group=54321", "env", "-u", "HOME"};
    Command probe;
    probe.argv = unknown_user;
    probe.argv.emplace_back("true");
    if (Job(scratch, probe).wait() != 0) DDL_SKIP("this kernel makes no user namespaces for this user");
    Command command = by(mpi, {"-np", "2"}, {program(mpi.program), "sum"});
    command.argv.insert(command.argv.begin(), unknown_user.begin(), unknown_user.end());
    Job job(scratch, command);
    CHECK(job.wait_and_require_nothing_left() == 0);
    CHECK_THAT(job.out(), Contains("mpi rank 1 of 2: 0 wrong sums\n"));
  }
}

TEST_CASE("ranks under mpirun are bound, and have their rank variables", "[mpirun]") {
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
    // One core each; different cores if there are two.
    std::vector<std::string> cpus;
    for (const std::string_view line : split(trim(job.out()), '\n'))
      cpus.emplace_back(line.substr(line.find("list: ") + 6));
    REQUIRE(cpus.size() == 2);
    if (ddl::CpuSet::allowed().count() >= 2) CHECK(cpus[0] != cpus[1]);
  }
}

#ifdef DDL_E2E_OPEN_MPI
TEST_CASE("a second ddl_init fails after its timeout if the PMIx server is stopped", "[mpirun]") {
  const Scratch scratch;
  // The PMIx server is mpirun, the parent of the rank: if ddlrun's server is stopped, its spawner ends the ranks.
  Command command;
  // Into a file, because mpirun may drop output that a rank prints just before it fails.
  const std::string output = scratch.path("output");
  command.argv = {DDL_E2E_MPIEXEC,        "-np", "1", "sh", "-c", "exec \"$0\" stopped >\"$1\"",
                  program("ddl_program"), output};
  command.environment = {{"OMPI_ALLOW_RUN_AS_ROOT", "1"}, {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"}};
  Job job(scratch, command);
  CHECK(job.wait() == 1);
  CHECK_THAT(bytes_of(output),
             Contains("init: bootstrap: PMIx_Fence: the PMIx server of this host has not answered for "));
}
#endif

TEST_CASE("a rank that fails under mpirun is named, ends the job, and gives its exit code", "[mpirun]") {
  struct Failure {
    std::string command;
    int code;
    std::string message;
  };
  const std::vector<Failure> failures = {{"exit 5", 5, "exited with 5"},
                                         {"kill -SEGV $$", 128 + SIGSEGV, "was killed by SIGSEGV"}};
  for (const Mpi& mpi : mpis()) {
    for (const auto& [command, code, message] : failures) {
      CAPTURE(mpi.mpirun, command);
      const Scratch scratch;
      Job job(scratch,
              by(mpi, {"-np", "3"}, {"sh", "-c", "[ $RANK != 1 ] || " + command + "; exec sleep 1000"}));
      CHECK(job.wait_and_require_nothing_left() == code);
      CHECK_THAT(job.err(), Contains("ddlrun: rank 1 on ") && Contains(message) &&
                                Contains("ddlrun: mpirun ended with "));
    }
    const Scratch scratch;
    Job missing(scratch, by(mpi, {"-np", "2"}, {"./no-such-program"}));
    CHECK(missing.wait_and_require_nothing_left() == contract::kNotFound);
    CHECK_THAT(missing.err(), Contains("could not be started: no such file"));
  }
}

TEST_CASE("MPI_Abort(3) under the MPI's own mpirun ends the job with exit code 3", "[mpirun]") {
  for (const Mpi& mpi : mpis()) {
    CAPTURE(mpi.mpirun);
    const Scratch scratch;
    Job job(scratch, by(mpi, {"-np", "3"}, {program(mpi.program), "abort", "3"}));
    CHECK(job.wait_and_require_nothing_left() == 3);
  }
}

TEST_CASE("under mpirun only rank 0 gets standard input, with its end", "[mpirun]") {
  for (const Mpi& mpi : mpis()) {
    CAPTURE(mpi.mpirun);
    const Scratch scratch;
    Command command = by(mpi, {"-np", "2"}, {"cat"});
    command.input = Command::Input::kPipe;
    Job job(scratch, command);
    job.write("hello\n");
    job.close_input();
    CHECK(job.wait_and_require_nothing_left() == 0);
    CHECK(without_space_after_tag(job.out()) == mpi.rank0 + "hello\n");
  }
}

TEST_CASE("under mpirun nothing is left after --timeout, or after SIGKILL or SIGINT to ddlrun", "[mpirun]") {
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

TEST_CASE("--dry-run prints mpirun's command line, and a missing or unknown mpirun is reported", "[mpirun]") {
  for (const Mpi& mpi : mpis()) {
    CAPTURE(mpi.mpirun);
    const Scratch scratch;
    Job job(scratch, by(mpi, {"-np", "2", "--dry-run", "--cores-per-rank", "1", "--site", "frontier"},
                        {"./a", "b c"}));
    CHECK(job.wait_and_require_nothing_left() == 0);
    CHECK_THAT(job.out(), Contains(mpi.mpirun + " ") && Contains("NCCL_CROSS_NIC") &&
                              Contains(" --mpi-rank --cores-per-rank 1 --rank-order cpu -- ./a 'b c'\n"));
    CHECK_THAT(job.err(), Contains("ranks also get ") && Contains(", NCCL_CROSS_NIC=1, ") &&
                              Contains(" (site frontier)\n"));
  }
  const Scratch scratch;
  Job missing(scratch, by({"no-such-mpirun", "", ""}, {"-np", "2"}, {"true"}));
  CHECK(missing.wait_and_require_nothing_left() == contract::kNotFound);
  CHECK_THAT(missing.err(), Contains("there is no no-such-mpirun in PATH"));
  Job wrong(scratch, by({"/bin/echo", "", ""}, {"-np", "2"}, {"true"}));
  CHECK(wrong.wait_and_require_nothing_left() == contract::kStartFailure);
  CHECK_THAT(wrong.err(), Contains("it is neither Open MPI's, PRRTE's nor hydra's"));
}

TEST_CASE("too few open files are reported as such, and not as a failure of mpirun", "[mpirun]") {
  for (const Mpi& mpi : mpis()) {
    CAPTURE(mpi.mpirun);
    const Scratch scratch;
    Command command = by(mpi, {"-np", "1"}, {"true"});
    command.argv.insert(command.argv.begin(), {"sh", "-c", "ulimit -n 10; exec \"$0\" \"$@\""});
    Job job(scratch, command);
    CHECK(job.wait_and_require_nothing_left() == contract::kStartFailure);
    CHECK_THAT(job.err(), Contains("ddlrun: only 10 files may be open (ulimit -n; "));
  }
}

}  // namespace
}  // namespace ddl::e2e
