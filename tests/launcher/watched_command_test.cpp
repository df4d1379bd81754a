// A command that the event loop runs to its end: what it prints, and how it is ended.
#include "launcher/process/watched_command.h"

#include <sys/wait.h>

#include <memory>

#include "base/text.h"
#include "launcher/process/end_watch.h"
#include "support/catch.h"

using namespace ddl::launcher;
using ddl::CommandOutput;
using ddl::Result;

namespace {

constexpr std::chrono::seconds kPatience(60);
constexpr std::size_t kMost = 1000;

/// Runs it, with the time that it has, until the loop has its result.
Result<CommandOutput> watched(const std::vector<std::string>& argv,
                              std::chrono::milliseconds patience = kPatience) {
  EventLoop loop;
  Result<CommandOutput> result;
  ddl::Command command;
  command.argv = argv;
  // The handler may destroy the command.
  std::unique_ptr<WatchedCommand> running;
  running = std::make_unique<WatchedCommand>(loop, command, patience, kMost,
                                             [&](const Result<CommandOutput>& output) {
                                               result = output;
                                               running.reset();
                                               loop.stop();
                                             });
  loop.run();
  return result;
}

}  // namespace

TEST_CASE("a watched command gives what it has printed, and how it has ended") {
  const auto output = watched({"/bin/sh", "-c", "echo out; echo err >&2; exit 3"});
  REQUIRE(output);
  CHECK(output->out == "out\n");
  CHECK(output->err == "err\n");
  CHECK(WEXITSTATUS(output->wait_status) == 3);
}

TEST_CASE("a watched command that takes too long is killed, with its process group") {
  const auto late = watched({"/bin/sh", "-c", "sleep 1000 & echo $!; wait"}, std::chrono::milliseconds(1));
  REQUIRE_FALSE(late);
  CHECK(late.error().code() == ddl::ErrorCode::kTimeout);
  CHECK(late.error().message() == "/bin/sh has not ended after 0.001 s");
}

TEST_CASE("what a watched command leaves in its group is killed") {
  const auto output = watched({"/bin/sh", "-c", "sleep 1000 >/dev/null 2>&1 & echo $!"});
  REQUIRE(output);
  const auto left = ddl::parse_integer(ddl::trim(output->out));
  REQUIRE(left);
  EventLoop loop;
  const EndWatch end(loop, static_cast<pid_t>(*left), [&loop] { loop.stop(); });
  loop.run();
}

TEST_CASE("a watched command that prints too much is an error, and so is one that does not exist") {
  const auto much = watched({"/bin/sh", "-c", "head -c 2000 /dev/zero; exec sleep 1000"});
  REQUIRE_FALSE(much);
  CHECK(much.error().message() == "/bin/sh prints more than 1000 bytes");
  const auto absent = watched({"/no/such/program"});
  REQUIRE_FALSE(absent);
  CHECK(absent.error().code() == ddl::ErrorCode::kNotFound);
}
