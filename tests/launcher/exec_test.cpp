// What a program gets from each of the launcher's ways to start one.
#include "launcher/fleet/piped_child.h"
#include "launcher/mpi/mpirun.h"
#include "launcher/node/start_child.h"
#include "launcher/process/child.h"
#include "launcher/process_tree.h"
#include "support/started_program.h"

using namespace ddl::launcher;
using namespace ddl::launcher::test;

namespace {

Environment map_of(const std::vector<std::string>& entries) {
  Environment environment;
  for (const std::string& entry : entries)
    environment.emplace(entry.substr(0, entry.find('=')), entry.substr(entry.find('=') + 1));
  return environment;
}

std::string output_of_piped(const std::vector<std::string>& words,
                            const std::optional<Environment>& environment) {
  PipedChild::Streams streams;
  auto child = PipedChild::start(words, environment, streams);
  REQUIRE(child);
  streams.in.reset();
  std::string said = read_to_end(streams.out.get());
  REQUIRE(child->wait(soon()));
  CHECK(child->status() == 0);
  return said;
}

}  // namespace

TEST_CASE("a rank gets exactly the arguments and the environment that it was described with", "[exec]") {
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

TEST_CASE("what starts agents gets exactly its arguments and its environment", "[exec]") {
  const StartedProgram program;
  CHECK(output_of_piped(program.words, map_of(program.environment)) == program.output());
  StartedProgram::own_entry();
  CHECK(program.has_own_entry(output_of_piped(program.words, std::nullopt)));
}

TEST_CASE("mpirun gets exactly its arguments, and the environment without what its rank was told", "[exec]") {
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
  const std::string said = read_to_end(out.first.get());
  CHECK(reap(pid) == 0);
  CHECK(program.has_own_entry(said));
  CHECK(said.find(std::string("\0MASTER_ADDR=first-host\0", 24)) != std::string::npos);
  CHECK(said.find(std::string("\0RANK=", 6)) == std::string::npos);
  CHECK(said.find("FORGOTTEN") == std::string::npos);
}
