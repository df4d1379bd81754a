// The exit codes of ddlrun: that of the first failure, 128+signal, and the shell's 126 and 127.
#include <csignal>
#include <filesystem>

#include "contract/ddlrun.h"
#include "e2e/harness/job.h"
#include "support/catch.h"

namespace ddl::e2e {
namespace {

using Catch::Matchers::Contains;

/// The exit code of a job that reads no input; requires that all of its processes and files are gone.
int run(const Scratch& scratch, std::vector<std::string> arguments, std::string* err = nullptr) {
  Job job(scratch, ddlrun(std::move(arguments)));
  const int status = job.wait_and_require_nothing_left();
  if (err != nullptr) *err = job.err();
  return status;
}

TEST_CASE("a job whose ranks all exit with 0 returns 0 and prints nothing", "[exit_code]") {
  const Scratch scratch;
  Job job(scratch, ddlrun({"-np", "2", "true"}));
  CHECK(job.wait_and_require_nothing_left() == 0);
  CHECK(job.out().empty());
  CHECK(job.err().empty());
}

TEST_CASE("ddlrun returns the exit code of the rank that fails first", "[exit_code]") {
  const Scratch scratch;
  CHECK(run(scratch, {"-np", "2", "sh", "-c", "[ $RANK = 1 ] && exit 7; exec sleep 1000"}) == 7);
  CHECK(run(scratch, {"-np", "1", "sh", "-c", "exit 255"}) == 255);
}

TEST_CASE("ranks that have already exited with 0 do not hide a later failure", "[exit_code]") {
  const Scratch scratch;
  CHECK(run(scratch, {"-np", "2", "sh", "-c", "[ $RANK = 0 ] && exit 0; exit 5"}) == 5);
}

TEST_CASE("ddlrun returns 128+N after a rank was killed by signal N", "[exit_code]") {
  const Scratch scratch;
  for (const int signal : {SIGTERM, SIGKILL, SIGSEGV, SIGUSR1, SIGHUP}) {
    CAPTURE(signal);
    CHECK(run(scratch, {"-np", "2", "sh", "-c",
                        "[ $RANK = 1 ] && kill -" + std::to_string(signal) + " $$; exec sleep 1000"}) ==
          128 + signal);
  }
}

TEST_CASE("a command that does not exist is reported, with exit code 127", "[exit_code]") {
  const Scratch scratch;
  std::string err;
  CHECK(run(scratch, {"-np", "2", "no-such-program"}, &err) == contract::kNotFound);
  CHECK_THAT(err, Contains("no-such-program"));
  CHECK(run(scratch, {"-np", "1", "./no/such/path"}, &err) == contract::kNotFound);
  CHECK_THAT(err, Contains("no/such/path"));
}

TEST_CASE("a directory of PATH that may not be searched does not turn 'not found' into 'not executable'",
          "[exit_code]") {
  const Scratch scratch;
  const std::string closed = scratch.make_directory("closed");
  std::filesystem::permissions(closed, std::filesystem::perms::none);
  CHECK(run(scratch, {"-np", "1", "-x", "PATH=" + closed + ":/usr/bin", "no-such-program"}) ==
        contract::kNotFound);
  std::filesystem::create_directory(scratch.path("bin"));
  const std::string file = scratch.write("bin/data", "not a program\n");
  CHECK(run(scratch, {"-np", "1", "-x", "PATH=" + scratch.path("bin") + ":/usr/bin", "data"}) ==
        contract::kNotExecutable);
}

TEST_CASE("a script whose interpreter does not exist is reported with that reason, with exit code 127",
          "[exit_code]") {
  const Scratch scratch;
  const std::string script = scratch.write("train", "#!/no/such/interpreter\n", true);
  std::string err;
  CHECK(run(scratch, {"-np", "2", script}, &err) == contract::kNotFound);
  CHECK_THAT(err, Contains(script) && Contains("interpreter"));
}

TEST_CASE("a file that cannot be executed is reported, with exit code 126", "[exit_code]") {
  const Scratch scratch;
  std::string err;
  const std::string file = scratch.write("data.txt", "not a program\n");
  CHECK(run(scratch, {"-np", "2", file}, &err) == contract::kNotExecutable);
  CHECK_THAT(err, Contains(file));
  CHECK(run(scratch, {"-np", "2", scratch.path()}, &err) == contract::kNotExecutable);  // a directory
  CHECK_THAT(err, Contains(scratch.path()));
  const std::string no_format = scratch.write("no_format", "echo no shebang line\n", true);
  Job job(scratch, ddlrun({"-np", "1", no_format}));  // execvp runs it with sh, as a shell does
  CHECK(job.wait_and_require_nothing_left() == 0);
  CHECK(job.out() == "no shebang line\n");
}

TEST_CASE("a working directory that does not exist is reported, with exit code 127", "[exit_code]") {
  const Scratch scratch;
  std::string err;
  CHECK(run(scratch, {"-np", "2", "--workdir", scratch.path("gone"), "true"}, &err) == contract::kNotFound);
  CHECK_THAT(err, Contains(scratch.path("gone")));
}

TEST_CASE("ranks start in the working directory, and PWD names it", "[exit_code]") {
  const Scratch scratch;
  const std::string directory = scratch.make_directory("data");
  Job job(scratch, ddlrun({"-np", "1", "--workdir", directory, "sh", "-c", "/bin/pwd; echo $PWD"}));
  CHECK(job.wait_and_require_nothing_left() == 0);
  CHECK(job.out() == directory + "\n" + directory + "\n");
}

TEST_CASE("more ranks than slots are refused with exit code 2 and a hint, except with --oversubscribe",
          "[exit_code]") {
  const Scratch scratch;
  std::string err;
  CHECK(run(scratch, {"-np", "1000", "true"}, &err) == contract::kUsageError);
  CHECK_THAT(err, Contains("--oversubscribe"));
  CHECK(run(scratch, {"-np", "7", "--oversubscribe", "sh", "-c", "[ $HOROVOD_SIZE = 7 ]"}) == 0);
}

TEST_CASE("--timeout ends the job with exit code 124", "[exit_code]") {
  const Scratch scratch;
  std::string err;
  CHECK(run(scratch, {"-np", "2", "--timeout", "0.2", "sleep", "1000"}, &err) == contract::kTimeout);
  CHECK_THAT(err, Contains("--timeout"));
}

TEST_CASE("--timeout has no effect on a job that ends in time", "[exit_code]") {
  const Scratch scratch;
  CHECK(run(scratch, {"-np", "2", "--timeout", "50", "true"}) == 0);
}

/// Rank 0 exits with this code once the test writes a line; rank 1 is the given command.
Command failing_at_will(int exit_code, const std::string& grace, const std::string& rank_1) {
  Command command = ddlrun(
      {"-np", "2", "--kill-grace", grace, "sh", "-c",
       "[ $RANK = 1 ] && exec " + rank_1 + "; echo ready; read go; exit " + std::to_string(exit_code)});
  command.input = Command::Input::kPipe;
  return command;
}

TEST_CASE("after a failure the other ranks may handle SIGTERM, and their exit codes are ignored",
          "[exit_code]") {
  const Scratch scratch;
  Job job(scratch, failing_at_will(4, "1000", program("signal_echo") + " TERM 9"));
  job.wait_for("ready", 2);
  job.write("now\n");
  CHECK(job.wait_and_require_nothing_left() == 4);
  CHECK_THAT(job.out(), Contains("[1]<stdout>:got SIGTERM"));
}

TEST_CASE("ranks that ignore SIGTERM are killed after --kill-grace", "[exit_code]") {
  const Scratch scratch;
  Job job(scratch, failing_at_will(3, "0.2", program("signal_echo")));
  job.wait_for("ready", 2);
  job.write("now\n");
  CHECK(job.wait_and_require_nothing_left() == 3);
  CHECK_THAT(job.out(), Contains("[1]<stdout>:got SIGTERM"));
  CHECK_THAT(job.err(), Contains("rank 1 was ended with SIGKILL"));
}

TEST_CASE("--kill-grace also applies after --timeout", "[exit_code]") {
  const Scratch scratch;
  std::string err;
  CHECK(run(scratch, {"-np", "2", "--kill-grace", "0.2", "--timeout", "2", program("signal_echo")}, &err) ==
        contract::kTimeout);
  CHECK_THAT(err, Contains("ranks 0, 1 were ended with SIGKILL"));
}

}  // namespace
}  // namespace ddl::e2e
