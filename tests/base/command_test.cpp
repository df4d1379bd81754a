#include "base/command.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <thread>
#include <type_traits>

#include "base/text.h"
#include "support/catch.h"
#include "support/processes.h"
#include "support/skip.h"
#include "support/started_program.h"
#include "support/temporary_directory.h"

using Catch::Matchers::Contains;
using ddl::Child;
using ddl::Command;
using ddl::Deadline;
using ddl::ErrorCode;
using ddl::UniqueFd;
using namespace std::chrono_literals;

namespace {

using Words = std::vector<std::string>;

std::string read_all(int fd) {
  std::string text;
  std::array<char, 4096> buffer;
  for (ssize_t got; (got = ::read(fd, buffer.data(), buffer.size())) > 0;)
    text.append(buffer.data(), static_cast<std::size_t>(got));
  return text;
}

/// What a program that ends with 0 writes to its standard output.
std::string output_of(Command command) {
  auto out = ddl::make_pipe();
  REQUIRE(out);
  command.streams.out = out->second.get();
  auto child = Child::start(command);
  if (!child) FAIL(child.error().message());
  out->second.reset();
  std::string text = read_all(out->first.get());
  REQUIRE(child->wait(Deadline::after(30s)));
  CHECK(child->wait_status() == 0);
  return text;
}

std::string shell(const std::string& script, Command command = {}) {
  command.argv = {"sh", "-c", script};
  return output_of(std::move(command));
}

std::string became(const Words& argv, const std::optional<Words>& environment) {
  auto out = ddl::make_pipe();
  REQUIRE(out);
  const pid_t pid = ::fork();
  REQUIRE(pid >= 0);
  if (pid == 0) {
    ::dup2(out->second.get(), STDOUT_FILENO);
    (void)ddl::become(argv, environment);
    ::_exit(127);
  }
  Child child(pid, false);
  out->second.reset();
  std::string text = read_all(out->first.get());
  REQUIRE(child.wait(Deadline::after(30s)));
  CHECK(child.exit_code() == 0);
  return text;
}

/// A line of /proc/self/status of a program that was started by the command, without the line's name.
std::string status_line(const std::string& name, const Command& command) {
  return shell("sed -n 's/^" + name + ":[[:space:]]*//p' /proc/self/status", command);
}

}  // namespace

TEST_CASE("nothing is prepared for a command that ends at once") {
  STATIC_REQUIRE(std::is_constructible_v<ddl::PreparedCommand, Command&>);
  STATIC_REQUIRE(std::is_constructible_v<ddl::PreparedCommand, const Command&>);
  STATIC_REQUIRE_FALSE(std::is_constructible_v<ddl::PreparedCommand, Command>);
  STATIC_REQUIRE_FALSE(std::is_constructible_v<ddl::PreparedCommand, const Command>);
}

// Every srun once got freed memory as its environment, which mostly looked like an environment still.
TEST_CASE("a program gets exactly the arguments and the environment of its command", "[exec]") {
  const StartedProgram program;
  CHECK(output_of({.argv = program.words, .environment = program.environment}) == program.output());
  StartedProgram::own_entry();
  CHECK(program.has_own_entry(output_of({.argv = program.words})));
  CHECK(output_of({.argv = program.words, .environment = Words{}}) == program.output({}));
}

TEST_CASE("variables replace those of the environment, and the rest is unchanged", "[exec]") {
  const StartedProgram program;
  // Entries that are no NAME=VALUE, and their order, too.
  const Words below = {"no value", "B=2", "LONG=short", "B=3", "=no name"};
  const std::string value(5000, 'v');
  CHECK(output_of({.argv = program.words, .environment = below, .variables = {{"LONG", value}, {"A", ""}}}) ==
        program.output({"no value", "B=2", "B=3", "=no name", "A=", "LONG=" + value}));
  StartedProgram::own_entry();
  const std::string on_own = output_of({.argv = program.words, .variables = {{"BYTES", "\xff\n'"}}});
  CHECK(program.has_own_entry(on_own));
  CHECK(on_own.find(std::string("\0BYTES=\xff\n'\0", 10)) != std::string::npos);
}

TEST_CASE("a program that a process becomes gets exactly the arguments and the environment", "[exec]") {
  const StartedProgram program;
  CHECK(became(program.words, program.environment) == program.output());
  StartedProgram::own_entry();
  CHECK(program.has_own_entry(became(program.words, std::nullopt)));
  CHECK(ddl::become({"/no/such/program"}).message() ==
        "executing /no/such/program: No such file or directory");
}

TEST_CASE("several threads start programs at once") {
  std::array<std::string, 4> texts;
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    threads.emplace_back([&text = texts[i], i] {
      for (int round = 0; round < 20; ++round) {
        auto child = ddl::start_piped({.argv = {"sh", "-c", "printf %s $1", "sh", std::to_string(i)}});
        if (!child) continue;
        text += read_all(child->out.get());
        child->child.wait(Deadline::after(30s));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (std::size_t i = 0; i < texts.size(); ++i)
    CHECK(texts[i] == std::string(20, static_cast<char>('0' + i)));
}

TEST_CASE("a program is looked for in the PATH of its environment, from its directory") {
  const ddl::test::TemporaryDirectory directory;
  const std::string& folder = directory.path();
  const std::string file = directory / "program";
  {
    const UniqueFd fd(::open(file.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0755));
    REQUIRE(
        ddl::write_all(fd.get(), "echo $0 $1\n", 11));  // without "#!": a shell runs it, as with execvp(3)
  }
  CHECK(output_of({.argv = {"program", "x"}, .environment = Words{"PATH=" + folder}}) == file + " x\n");
  CHECK(output_of({.argv = {"program"}, .environment = Words{"PATH=/nonexistent:."}, .directory = folder}) ==
        "./program\n");
  CHECK(ddl::find_in_path("program", "/nonexistent:" + folder) == file);
  ::chmod(file.c_str(), 0644);
  const auto refused = Child::start({.argv = {"program"}, .environment = Words{"PATH=" + folder}});
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code() == ErrorCode::kPermissionDenied);
  CHECK(refused.error().message() == "starting program: Permission denied");
  CHECK_FALSE(ddl::find_in_path("program", folder));
  const auto missing = Child::start({.argv = {"no-such-program"}});
  REQUIRE_FALSE(missing);
  CHECK(missing.error().code() == ErrorCode::kNotFound);
  CHECK_FALSE(Child::start({}));
}

TEST_CASE("a step that fails before a program starts is an error that names it, and leaves no child") {
  const auto directory = Child::start({.argv = {"true"}, .directory = "/no/such/folder"});
  REQUIRE_FALSE(directory);
  CHECK(directory.error().message() ==
        "starting true: its directory /no/such/folder: No such file or directory");
  const auto cpus = Child::start({.argv = {"true"}, .cpus = ddl::CpuSet::of({ddl::kMaxCpuNumbers - 1})});
  REQUIRE_FALSE(cpus);
  CHECK_THAT(cpus.error().message(), Contains("starting true: binding it to CPUs 65535: "));
  const auto stream = Child::start({.argv = {"true"}, .streams = {.out = 1'000'000}});
  REQUIRE_FALSE(stream);
  CHECK_THAT(stream.error().message(), Contains("starting true: its standard streams: "));
  CHECK(::waitpid(-1, nullptr, WNOHANG) == -1);
}

TEST_CASE("no descriptor reaches a program but the named ones") {
  const UniqueFd leaking(::dup(STDERR_FILENO));  // dup(2) clears close-on-exec
  const UniqueFd far_away(::fcntl(STDERR_FILENO, F_DUPFD, 200));
  REQUIRE((leaking && far_away));
  // Its own, for the folder that it lists, is the first free one.
  CHECK(output_of({.argv = {"ls", "/proc/self/fd"}}) == "0\n1\n2\n3\n");

  auto pipe = ddl::make_pipe();
  REQUIRE(pipe);
  REQUIRE(ddl::write_all(pipe->second.get(), "words\n", 6));
  pipe->second.reset();
  const int first = pipe->first.get();
  CHECK(output_of({.argv = {"ls", "/proc/self/fd"}, .inherited = {{first, 7}, {first, 3}}}) ==
        "0\n1\n2\n3\n4\n7\n");
  CHECK(shell("cat <&7", {.inherited = {{first, 7}}}) == "words\n");
}

// Linux before 5.11, and containers that filter system calls.
TEST_CASE("no descriptor reaches a program but the named ones, also without close_range") {
  std::vector<UniqueFd> leaking;  // more than one read of the folder returns
  for (int i = 0; i < 300; ++i) leaking.emplace_back(::dup(STDERR_FILENO));
  const pid_t pid = ::fork();
  REQUIRE(pid >= 0);
  if (pid == 0) {
    constexpr unsigned int kCloseRange = 436;
    if (!ddl::test::refuse_system_call(kCloseRange, ENOSYS)) ::_exit(77);
    auto list = ddl::start_piped({.argv = {"ls", "/proc/self/fd"}});
    ::_exit(list && read_all(list->out.get()) == "0\n1\n2\n3\n" ? 0 : 1);
  }
  Child child(pid, false);
  REQUIRE(child.wait(Deadline::after(30s)));
  if (child.exit_code() == 77) DDL_SKIP("system calls cannot be filtered here");
  CHECK(child.exit_code() == 0);
}

TEST_CASE("streams may be each other's numbers, /dev/null, or closed") {
  auto out = ddl::make_pipe();
  REQUIRE(out);
  auto child = Child::start({.argv = {"sh", "-c", "echo out; echo err >&2"},
                             .streams = {ddl::kNullStream, out->second.get(), out->second.get()}});
  REQUIRE(child);
  out->second.reset();
  CHECK(read_all(out->first.get()) == "out\nerr\n");
  CHECK(shell("cat; readlink /proc/self/fd/0", {.streams = {.in = ddl::kNullStream}}) == "/dev/null\n");
  CHECK(output_of({.argv = {"sh", "-c", "[ -e /proc/$$/fd/0 ] || echo closed"},
                   .streams = {.in = ddl::kClosedStream}}) == "closed\n");
}

TEST_CASE("a program has every signal at its default and none blocked, unlike this process") {
  sigset_t blocked, before;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGTERM);
  ::sigprocmask(SIG_BLOCK, &blocked, &before);
  const auto handler = std::signal(SIGUSR1, SIG_IGN);
  const std::string zero(16, '0');
  CHECK(status_line("SigBlk", {}) == zero + "\n");
  CHECK(status_line("SigIgn", {}) == zero + "\n");
  CHECK(status_line("SigIgn", {.ignored_signals = {SIGHUP}}) == "0000000000000001\n");
  sigset_t now;
  ::sigprocmask(SIG_SETMASK, &before, &now);
  std::signal(SIGUSR1, handler);
  CHECK(sigismember(&now, SIGTERM) == 1);  // this thread's mask stayed
  CHECK(sigismember(&now, SIGUSR2) == 0);
}

TEST_CASE("a program gets its directory, its CPUs and its limits, and this process keeps its own") {
  CHECK(shell("pwd", {.directory = "/usr"}) == "/usr\n");
  const ddl::CpuSet all = ddl::CpuSet::allowed(), last = ddl::CpuSet::of({all.cpus().back()});
  CHECK(status_line("Cpus_allowed_list", {.cpus = last}) == last.list() + "\n");
  CHECK(ddl::CpuSet::allowed() == all);
  CHECK(shell("ulimit -n; ulimit -Hn", {.limits = {{RLIMIT_NOFILE, {64, 128}}}}) == "64\n128\n");
  rlimit own{};
  ::getrlimit(RLIMIT_NOFILE, &own);
  CHECK(own.rlim_cur > 64);
}

TEST_CASE("a program has a process group, or a session, of its own, or this process's") {
  const std::string group_is_own = "read -r _ _ _ _ group session _ < /proc/$$/stat; echo $((group == $$)) ";
  CHECK(shell(group_is_own + "$((session == $$))") == "1 0\n");
  CHECK(shell(group_is_own + "$((session == $$))", {.group = Command::Group::kOwnSession}) == "1 1\n");
  CHECK(shell("read -r _ _ _ _ group _ < /proc/$$/stat; echo $group", {.group = Command::Group::kOfParent}) ==
        std::to_string(::getpgrp()) + "\n");
}

TEST_CASE("a child is waited for until a deadline, signalled, and reaped once") {
  auto child = Child::start({.argv = {"sleep", "1000"}});
  REQUIRE(child);
  CHECK_FALSE(child->wait(Deadline::after(1ms)));
  child->signal(SIGTERM);
  REQUIRE(child->wait(Deadline::after(30s)));
  CHECK(WIFSIGNALED(child->wait_status()));
  CHECK(child->exit_code() == 128 + SIGTERM);
  CHECK(child->wait(Deadline::after(0s)));
  child->signal(SIGTERM);  // no process has that pid
  child->kill();
  CHECK(child->exit_code() == 128 + SIGTERM);
  auto other = Child::start({.argv = {"sh", "-c", "exit 7"}});
  REQUIRE(other);
  other->end(Deadline::after(30s));
  CHECK(other->exit_code() == 7);
}

TEST_CASE("a child that goes out of scope is killed with its group and reaped") {
  auto pipe = ddl::make_pipe();
  REQUIRE(pipe);
  pid_t pid = 0;
  {
    auto started = Child::start({.argv = {"sh", "-c", "trap '' TERM; sleep 1000 & echo up; sleep 1000"},
                                 .streams = {.out = pipe->second.get()}});
    REQUIRE(started);
    Child child = *std::move(started);
    pid = child.pid();
    pipe->second.reset();
    char byte;
    REQUIRE(::read(pipe->first.get(), &byte, 1) == 1);
  }
  CHECK(::waitpid(pid, nullptr, WNOHANG) == -1);
  // At end of file once the whole group, which holds the other end, is gone.
  pollfd entry{pipe->first.get(), POLLIN, 0};
  CHECK(::poll(&entry, 1, 10'000) == 1);
  CHECK(read_all(pipe->first.get()) == "p\n");
}
