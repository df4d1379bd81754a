// The arguments and the environment of a program in each of the ways in which the launcher starts one.
#include "base/command.h"
#include "launcher/mpi/mpirun.h"
#include "launcher/node/start_child.h"
#include "launcher/process/child.h"
#include "support/processes.h"
#include "support/started_program.h"

using namespace ddl::launcher;
using namespace ddl::test;

TEST_CASE("a rank gets exactly the arguments and the environment of its description", "[exec]") {
  const StartedProgram program;
  auto out = test_pipe();
  ChildFds fds;
  fds.standard = {ddl::UniqueFd(::open("/dev/null", O_RDWR | O_CLOEXEC)), std::move(out.second),
                  ddl::UniqueFd(::dup(STDERR_FILENO))};
  const auto child =
      start_child(ChildSpec{0, program.words, program.environment, "/"}, fds, open_files_limit());
  REQUIRE(child);
  fds = {};
  CHECK(read_to_end(out.first.get()) == program.output());
  CHECK(reap(child->pid) == 0);
}

TEST_CASE("the command that starts agents gets exactly its arguments and its environment", "[exec]") {
  const StartedProgram program;
  auto child = ddl::start_piped({.argv = program.words, .environment = program.environment});
  REQUIRE(child);
  child->in.reset();
  CHECK(read_to_end(child->out.get()) == program.output());
  CHECK(read_to_end(child->err.get()).empty());
  REQUIRE(child->child.wait(soon()));
  CHECK(child->child.wait_status() == 0);
}

TEST_CASE("mpirun gets exactly its arguments, and the environment without the variables of a rank",
          "[exec]") {
  const StartedProgram program;
  StartedProgram::own_entry();
  auto out = test_pipe();
  const pid_t pid = fork_process([&] {
    ::setenv("RANK", "0", 1);
    ::setenv("FORGOTTEN", "1", 1);
    std::vector<std::string> words = {"first-host", "FORGOTTEN,NEVER_SET"};
    words.insert(words.end(), program.words.begin(), program.words.end());
    ::dup2(out.second.get(), STDOUT_FILENO);
    ::_exit(become_mpirun(words));
  });
  out.second.reset();
  const std::string output = read_to_end(out.first.get());
  CHECK(reap(pid) == 0);
  CHECK(program.has_own_entry(output));
  CHECK(output.find(std::string("\0MASTER_ADDR=first-host\0", 24)) != std::string::npos);
  CHECK(output.find(std::string("\0RANK=", 6)) == std::string::npos);
  CHECK(output.find("FORGOTTEN") == std::string::npos);
}
