#include "base/command_output.h"

#include <csignal>

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/process.h"
#include "base/text.h"
#include "support/catch.h"
#include "support/started_program.h"

using Catch::Matchers::Contains;
using ddl::command_output;
using ddl::ErrorCode;
using namespace std::chrono_literals;

namespace {

auto run_shell(const std::string& script, std::string_view input = {},
               std::chrono::milliseconds patience = 30s) {
  return command_output({"sh", "-c", script}, input, patience);
}

}  // namespace

TEST_CASE("a command's output, errors and status are returned separately") {
  const auto output = run_shell("echo one; echo two >&2; exit 3");
  REQUIRE(output);
  CHECK(output->out == "one\n");
  CHECK(output->err == "two\n");
  REQUIRE(WIFEXITED(output->wait_status));
  CHECK(WEXITSTATUS(output->wait_status) == 3);
  const auto killed = run_shell("kill -TERM $$");
  REQUIRE(killed);
  REQUIRE(WIFSIGNALED(killed->wait_status));
  CHECK(WTERMSIG(killed->wait_status) == SIGTERM);
}

TEST_CASE("a command gets exactly its arguments, and this process's environment", "[exec]") {
  const StartedProgram program;
  StartedProgram::own_entry();
  const auto output = command_output(program.words, {}, 30s);
  REQUIRE(output);
  CHECK(program.has_own_entry(output->out));
}

TEST_CASE("a command reads its input, or does not") {
  const std::string long_input(3'000'000, 'x');
  const auto echoed = command_output({"cat"}, long_input, 30s);
  REQUIRE(echoed);
  CHECK(echoed->out == long_input);
  const auto ignored = run_shell("exec 0<&-; echo done", long_input);
  REQUIRE(ignored);
  CHECK(ignored->out == "done\n");
  const auto empty = command_output({"cat"}, {}, 30s);
  REQUIRE(empty);
  CHECK(empty->out.empty());
}

TEST_CASE("both streams are read while the command writes them") {
  const auto output = run_shell("head -c 1000000 /dev/zero >&2; head -c 2000000 /dev/zero");
  REQUIRE(output);
  CHECK(output->out.size() == 2'000'000);
  CHECK(output->err.size() == 1'000'000);
}

TEST_CASE("a command that cannot be started is named") {
  const auto missing = command_output({"no-such-command-of-ours"}, {}, 30s);
  REQUIRE_FALSE(missing);
  CHECK(missing.error().code() == ErrorCode::kNotFound);
  CHECK_THAT(missing.error().message(), Contains("no-such-command-of-ours"));
  const auto forbidden = command_output({"/etc/passwd"}, {}, 30s);
  REQUIRE_FALSE(forbidden);
  CHECK(forbidden.error().code() == ErrorCode::kPermissionDenied);
  CHECK_FALSE(command_output({}, {}, 30s));
}

TEST_CASE("a command that is late is killed with its group") {
  auto pipe = ddl::make_pipe();
  REQUIRE(pipe);
  // What the group holds open: at end of file once all of it is gone.
  const std::string fd = std::to_string(pipe->second.get());
  const auto path = "/proc/" + std::to_string(::getpid()) + "/fd/" + fd;
  const auto late = run_shell("exec 9>" + path + "; trap '' TERM; sleep 1000 & sleep 1000", {}, 300ms);
  REQUIRE_FALSE(late);
  CHECK(late.error().code() == ErrorCode::kTimeout);
  CHECK_THAT(late.error().message(), Contains("sh: it did not end in time and was killed"));
  pipe->second.reset();
  pollfd gone{pipe->first.get(), POLLIN, 0};
  CHECK(::poll(&gone, 1, 10'000) == 1);
  CHECK((gone.revents & POLLHUP) != 0);
  CHECK(::waitpid(-1, nullptr, WNOHANG) == -1);  // it is reaped
}

TEST_CASE("a command that has ended is not waited for any longer") {
  // A daemon in the making: it holds the pipes, and would for a thousand seconds.
  const auto output = run_shell("sleep 1000 & echo started");
  REQUIRE(output);
  CHECK(output->out == "started\n");
}

TEST_CASE("a command whose output does not end is an error") {
  const auto endless = run_shell("exec yes");
  REQUIRE_FALSE(endless);
  CHECK(endless.error().code() == ErrorCode::kProtocol);
  CHECK_THAT(endless.error().message(), Contains("it prints more than 16 megabytes"));
}

TEST_CASE("a command has default signals") {
  const auto before = std::signal(SIGPIPE, SIG_IGN);
  const auto output = run_shell("kill -PIPE $$; echo it was ignored");
  std::signal(SIGPIPE, before);
  REQUIRE(output);
  CHECK(output->out.empty());
  REQUIRE(WIFSIGNALED(output->wait_status));
  CHECK(WTERMSIG(output->wait_status) == SIGPIPE);
}
