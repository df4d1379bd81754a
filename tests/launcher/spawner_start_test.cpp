// A child of the spawner: its streams, directory, environment, signals and descriptors; and failures before exec.
#include <sys/stat.h>

#include <cerrno>
#include <fstream>
#include <set>
#include <sstream>

#include "launcher/spawner_harness.h"

using ddl::descendants_of;
using ddl::StartStage;
using namespace ddl::launcher;
using namespace ddl::launcher::test;
using message::ChildEnded;
using message::ChildFailed;
using message::ChildStarted;

namespace {

/// Runs a child to its end and returns its standard output. It must exit with 0.
std::string output_of(SpawnerHarness& spawner, const ChildSpec& child, int in = -1) {
  auto pipe = test_pipe();
  spawner.spawn(child, pipe.second.get(), in);
  pipe.second.reset();
  spawner.expect<ChildStarted>();
  std::string output = read_to_end(pipe.first.get());
  CHECK(spawner.expect<ChildEnded>().wait_status == 0);
  return output;
}

std::string output_of(SpawnerHarness& spawner, std::vector<std::string> argv) {
  return output_of(spawner, ChildSpec{0, std::move(argv), {"PATH=/usr/bin:/bin"}, "/"});
}

ChildFailed failure_of(SpawnerHarness& spawner, ChildSpec child) {
  child.rank = 5;
  spawner.spawn(child);
  const auto failed = spawner.expect<ChildFailed>();
  CHECK(failed.rank == 5);
  return failed;
}

/// The line "name: value" of /proc/PID/status.
std::string status_field(const std::string& status, const std::string& name) {
  std::istringstream lines(status);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(name + ":\t")) return line.substr(name.size() + 2);
  }
  return "missing";
}

}  // namespace

TEST_CASE_METHOD(SpawnerHarness,
                 "a child's arguments, environment and directory are those of its description") {
  const std::vector<std::string> environment = {"PATH=/usr/bin:/bin", "GREETING=hello world",
                                                "EMPTY=", "BYTES=\xff"};
  CHECK(output_of(*this, ChildSpec{0, {"env"}, environment, "/"}) ==
        "PATH=/usr/bin:/bin\nGREETING=hello world\nEMPTY=\nBYTES=\xff\n");
  CHECK(output_of(*this, ChildSpec{0, {"printf", "%s|", "a b", "", "\xff*"}, environment, "/"}) ==
        "a b||\xff*|");
  CHECK(output_of(*this, ChildSpec{0, {"pwd"}, environment, "/usr/share"}) == "/usr/share\n");
}

TEST_CASE_METHOD(SpawnerHarness, "a child reads its standard input and writes to its own output and error") {
  auto in = test_pipe();
  auto out = test_pipe();
  auto err = test_pipe();
  send(message::Spawn{{1, {"sh", "-c", "cat; echo mistake >&2"}, {"PATH=/usr/bin:/bin"}, "/"}},
       std::vector<int>{in.first.get(), out.second.get(), err.second.get()});
  in.first.reset();
  out.second.reset();
  err.second.reset();
  write_text(in.second.get(), "typed");
  in.second.reset();
  CHECK(read_to_end(out.first.get()) == "typed");
  CHECK(read_to_end(err.first.get()) == "mistake\n");
}

TEST_CASE_METHOD(SpawnerHarness, "the command is searched in the child's own PATH, from its directory") {
  const std::filesystem::path bin = std::filesystem::path(directory) / "bin";
  std::filesystem::create_directory(bin);
  std::ofstream(bin / "only-here") << "#!/bin/sh\necho found\n";
  std::filesystem::permissions(bin / "only-here", std::filesystem::perms::owner_all);
  CHECK(output_of(*this, ChildSpec{0, {"only-here"}, {"PATH=/bin:" + bin.string()}, "/"}) == "found\n");
  CHECK(output_of(*this, ChildSpec{0, {"only-here"}, {"PATH=bin"}, directory}) == "found\n");
  CHECK(output_of(*this, ChildSpec{0, {"bin/only-here"}, {}, directory}) == "found\n");
  CHECK(failure_of(*this, ChildSpec{0, {"only-here"}, {"PATH=/bin"}, "/"}).error == ENOENT);
}

TEST_CASE_METHOD(SpawnerHarness, "a child leads a process group of its own, under the spawner") {
  const pid_t child = spawn_sleeper(0);
  CHECK(::getpgid(child) == child);
  CHECK(::getpgid(pid()) != child);
  const auto status = ddl::read_file("/proc/" + std::to_string(child) + "/status");
  REQUIRE(status);
  CHECK(status_field(*status, "PPid") == std::to_string(pid()));
}

TEST_CASE_METHOD(SpawnerHarness, "a child has every signal at its default and none blocked") {
  const std::string status = output_of(*this, {"cat", "/proc/self/status"});
  CHECK(status_field(status, "SigBlk") == "0000000000000000");
  CHECK(status_field(status, "SigIgn") == "0000000000000000");
  CHECK(status_field(status, "SigCgt") == "0000000000000000");
}

TEST_CASE("a child has every signal at its default also when the agent ignores and blocks some") {
  const auto hup = std::signal(SIGHUP, SIG_IGN);
  const auto pipe = std::signal(SIGPIPE, SIG_IGN);
  sigset_t blocked, before;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGUSR1);
  sigaddset(&blocked, SIGTERM);
  REQUIRE(::sigprocmask(SIG_BLOCK, &blocked, &before) == 0);
  std::string status;
  {
    SpawnerHarness spawner;
    status = output_of(spawner, {"cat", "/proc/self/status"});
  }
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
  std::signal(SIGHUP, hup);
  std::signal(SIGPIPE, pipe);
  CHECK(status_field(status, "SigBlk") == "0000000000000000");
  CHECK(status_field(status, "SigIgn") == "0000000000000000");
}

TEST_CASE("a child has no descriptor but 0, 1 and 2, whatever the agent had open") {
  const int leaked = ::open("/dev/null", O_RDONLY);  // not close-on-exec
  REQUIRE(leaked > 2);
  {
    SpawnerHarness spawner;
    const pid_t sleeper = spawner.spawn_sleeper(0);  // for which the spawner holds descriptors
    CHECK(sleeper > 0);
    // 3 is the directory that ls itself has open.
    CHECK(output_of(spawner, {"ls", "/proc/self/fd"}) == "0\n1\n2\n3\n");
  }
  ::close(leaked);
}

TEST_CASE_METHOD(SpawnerHarness,
                 "a failure before exec is reported with its stage and errno, and leaves no process") {
  const std::vector<std::string> environment = {"PATH=/usr/bin:/bin"};
  const auto missing = failure_of(*this, {0, {"no-such-command"}, environment, "/"});
  CHECK(missing.stage == StartStage::kExec);
  CHECK(missing.error == ENOENT);
  const auto no_file = failure_of(*this, {0, {"/no/such/file"}, environment, "/"});
  CHECK(no_file.stage == StartStage::kExec);
  CHECK(no_file.error == ENOENT);
  const auto not_executable = failure_of(*this, {0, {"/etc/passwd"}, environment, "/"});
  CHECK(not_executable.stage == StartStage::kExec);
  CHECK(not_executable.error == EACCES);
  const auto too_long = failure_of(*this, {0, {"true", std::string(1 << 22, 'x')}, environment, "/"});
  CHECK(too_long.stage == StartStage::kExec);
  CHECK(too_long.error == E2BIG);
  const auto no_directory = failure_of(*this, {0, {"true"}, environment, "/no/such/place"});
  CHECK(no_directory.stage == StartStage::kDirectory);
  CHECK(no_directory.error == ENOENT);
  const auto no_directory_but_file = failure_of(*this, {0, {"true"}, environment, "/etc/passwd"});
  CHECK(no_directory_but_file.stage == StartStage::kDirectory);
  CHECK(no_directory_but_file.error == ENOTDIR);

  CHECK(descendants_of(pid()).empty());
  spawn(1, {"true"});  // the spawner continues
  CHECK(expect<ChildStarted>().rank == 1);
  CHECK(expect<ChildEnded>().rank == 1);
}

TEST_CASE_METHOD(SpawnerHarness, "a child that is described without its descriptors is not started") {
  send(message::Spawn{{3, {"true"}, {}, "/"}});
  const auto failed = expect<ChildFailed>();
  CHECK(failed.rank == 3);
  CHECK(failed.stage == StartStage::kStreams);
  CHECK(failed.error == EBADF);
}
