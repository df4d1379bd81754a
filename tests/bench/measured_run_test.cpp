#include "bench/measured_run.h"

#include <signal.h>
#include <unistd.h>

#include "base/cpu_set.h"
#include "base/process_tree.h"
#include "bench/machine.h"
#include "support/catch.h"
#include "support/started_program.h"

namespace ddl::bench {
namespace {

Command shell(const std::string& script) { return {.argv = {"/bin/sh", "-c", script}}; }

Result<RunCost> run(const Command& command, double timeout = 30) {
  auto child = MeasuredRun::start(command);
  if (!child) return fail(std::move(child.error()));
  return child->finish(Deadline::after_seconds(timeout));
}

std::string error_of(const Command& command, double timeout = 30) {
  const auto cost = run(command, timeout);
  return cost ? std::string("succeeded") : cost.error().message();
}

TEST_CASE("a program that succeeds has a cost") {
  REQUIRE(become_subreaper());
  const auto cost = run(shell("exit 0"));
  REQUIRE(cost);
  CHECK(cost->wall_seconds > 0);
  CHECK(cost->cpu_seconds > 0);
}

TEST_CASE("a failed run reports the reason and the end of its output") {
  REQUIRE(become_subreaper());
  CHECK(error_of(shell("echo some words; exit 3")) == "exited with 3; its output ends: some words");
  CHECK(error_of(shell("kill -9 $$")).find("SIGKILL") != std::string::npos);
  CHECK(error_of({.argv = {"/nonexistent/program"}}).find("/nonexistent/program") != std::string::npos);
}

TEST_CASE("long output is read while the program runs, and only its end is quoted") {
  REQUIRE(become_subreaper());
  const std::string message =
      error_of(shell("i=0; while [ $i -lt 20000 ]; do echo line $i; i=$((i+1)); done; exit 1"));
  CHECK(message.find("line 19999") != std::string::npos);
  CHECK(message.size() < 3000);
}

TEST_CASE("a program that does not end in time is killed with all that it started") {
  REQUIRE(become_subreaper());
  CHECK(error_of(shell("setsid sleep 1000 & sleep 1000"), 0.2).find("did not end in time") == 0);
  CHECK(descendants_of(::getpid()).empty());
}

TEST_CASE("a process left behind is an error that names it, and is killed") {
  REQUIRE(become_subreaper());
  const std::string message = error_of(shell("setsid sleep 1000 > /dev/null 2>&1 &"));
  CHECK(message.find("left running: ") == 0);
  CHECK(message.find("sleep") != std::string::npos);
  CHECK(descendants_of(::getpid()).empty());
}

TEST_CASE("an orphan that ends by itself is waited for and its CPU time counted") {
  REQUIRE(become_subreaper());
  const std::string busy = "i=0; while [ $i -lt 50000 ]; do i=$((i+1)); done";
  const auto orphaned = run(shell("(" + busy + ") > /dev/null 2>&1 &"));
  const auto nothing = run(shell("exit 0"));
  REQUIRE(orphaned);
  REQUIRE(nothing);
  CHECK(orphaned->cpu_seconds > 2 * nothing->cpu_seconds);
}

TEST_CASE("the program gets the environment, and exactly the CPUs, of the command") {
  REQUIRE(become_subreaper());
  const CpuSet before = CpuSet::allowed();
  const int cpu = before.cpus().back();
  const std::string wanted = "Cpus_allowed_list:\t" + std::to_string(cpu);
  Command command = shell("[ \"$GIVEN\" = 'a b' ] && grep -qx \"$WANTED\" /proc/self/status");
  command.variables = {{"GIVEN", "a b"}, {"WANTED", wanted}};
  command.cpus = CpuSet::of({cpu});
  CHECK(error_of(command) == "succeeded");
  CHECK(CpuSet::allowed() == before);
}

// Not under valgrind: 3.19 has no pidfd_open, without which no MeasuredRun starts.
TEST_CASE("the program gets exactly its arguments, and the command's environment on top of ours") {
  REQUIRE(become_subreaper());
  StartedProgram program;
  program.words.front() = "/bin/sh";
  StartedProgram::own_entry();
  auto child = MeasuredRun::start(
      {.argv = program.words, .variables = {{"LONG", std::string(5000, 'v')}, {"BYTES", "\xff\n'"}}});
  REQUIRE(child);
  REQUIRE(child->finish(Deadline::after_seconds(30)));
  CHECK(program.has_own_entry(child->output()));
  CHECK(child->output().find('\0' + std::string("LONG=") + std::string(5000, 'v') + '\0') !=
        std::string::npos);
  CHECK(child->output().find(std::string("\0BYTES=\xff\n'\0", 10)) != std::string::npos);
}

TEST_CASE("a word is waited for as often as asked, and a missing one is an error") {
  REQUIRE(become_subreaper());
  auto child = MeasuredRun::start(shell("echo ready; echo ready; exec sleep 1000"));
  REQUIRE(child);
  CHECK(child->wait_for_output("ready", 2, Deadline::after_seconds(30)));
  CHECK(child->stay_running(Deadline::after_seconds(0.01)));
  CHECK(!child->wait_for_output("ready", 3, Deadline::after_seconds(0.05)));

  auto ending = MeasuredRun::start(shell("echo ready"));
  REQUIRE(ending);
  CHECK(!ending->wait_for_output("ready", 2, Deadline::after_seconds(30)));
  CHECK(!ending->stay_running(Deadline::after_seconds(30)));
}

TEST_CASE("a command can be pasted into a shell") {
  CHECK(command_text({.argv = {"/bin/echo", "two words"}, .variables = {{"NAME", "a b"}}}) ==
        "NAME='a b' /bin/echo 'two words'");
}

}  // namespace
}  // namespace ddl::bench
