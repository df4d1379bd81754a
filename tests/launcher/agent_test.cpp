// An agent as a process: fork and setenv happen only before its first thread.
#include "launcher/node/agent.h"

#include <pthread.h>
#include <unistd.h>

#include <array>
#include <span>
#include <string>
#include <vector>

#include "launcher/node/node_probe.h"
#include "launcher/process/session_directory.h"
#include "launcher/protocol/codec.h"
#include "support/processes.h"

using namespace ddl::launcher;
using namespace ddl::test;

namespace {

bool may_have_threads = false;
int forks_beside_threads = 0;

std::vector<std::string> environment_now() {
  std::vector<std::string> entries;
  for (char** entry = environ; *entry != nullptr; ++entry) entries.emplace_back(*entry);
  return entries;
}

}  // namespace

// A joining agent then has a thread for TLS. In a child that is forked later, a lock may be held for ever, and
// getenv in that thread may read the environment while it is being moved.
TEST_CASE("an agent forks nothing and leaves its environment alone once it may have threads") {
  auto link = test_socket_pair();
  const std::string directory = new_session_directory_name().value();
  const pid_t agent = fork_process([&] {
    link.first.reset();
    ::pthread_atfork([] { forks_beside_threads += may_have_threads ? 1 : 0; }, nullptr, nullptr);
    std::vector<std::string> before;
    run_agent(directory, std::move(link.second), {}, [&] {
      may_have_threads = true;
      before = environment_now();
    });
    ::_exit((forks_beside_threads > 0 ? 1 : 0) + (before == environment_now() ? 0 : 2));
  });
  link.second.reset();
  // It has sent its facts. Then its head closes the link.
  char byte = 0;
  CHECK(::read(link.first.get(), &byte, 1) == 1);
  link.first.reset();
  CHECK(reap(agent) == 0);
}

TEST_CASE("an agent that cannot decode a message of its head reports that, and ends") {
  auto link = test_socket_pair();
  const pid_t agent = fork_process([&] {
    link.first.reset();
    ::_exit(run_agent(new_session_directory_name().value(), std::move(link.second)));
  });
  link.second.reset();
  const ddl::net::Frame frame = message::encode<message::AgentToHead>(message::RankStarted{1, 0, 2});
  std::string bytes;
  ddl::net::append_frame(bytes, frame.type, frame.payload);
  write_text(link.first.get(), bytes);
  ddl::net::FrameDecoder decoder;
  const std::string received = read_to_end(link.first.get());
  decoder.append(std::as_bytes(std::span(received)));
  std::vector<std::string> failures;
  for (auto next = decoder.next(); next && *next; next = decoder.next()) {
    const auto report = message::decode<message::AgentToHead>(**next);
    REQUIRE(report);
    if (const auto* failed = std::get_if<message::AgentFailed>(&*report)) failures.push_back(failed->text);
  }
  CHECK_THAT(failures,
             Catch::VectorContains(std::string(
                 "ddlrun sent a message of type RankStarted, which does not go from head to agent, so the "
                 "ranks here were ended")));
  CHECK(reap(agent) == 0);
}

TEST_CASE("a rank that has ended is started again by another launch, as its next incarnation") {
  auto link = test_socket_pair();
  const pid_t agent = fork_process([&] {
    link.first.reset();
    ::_exit(run_agent(new_session_directory_name().value(), std::move(link.second)));
  });
  link.second.reset();
  const auto send = [&](const message::HeadToAgent& message) {
    const ddl::net::Frame frame = message::encode(message);
    std::string bytes;
    ddl::net::append_frame(bytes, frame.type, frame.payload);
    write_text(link.first.get(), bytes);
  };
  ddl::net::FrameDecoder decoder;
  const auto next_end = [&]() -> RankOutcome {
    for (;;) {
      auto frame = decoder.next();
      REQUIRE(frame);
      if (!*frame) {
        std::array<std::byte, 4096> bytes{};
        const ssize_t got = ::read(link.first.get(), bytes.data(), bytes.size());
        REQUIRE(got > 0);
        decoder.append(std::span(bytes).first(static_cast<std::size_t>(got)));
        continue;
      }
      const auto report = message::decode<message::AgentToHead>(**frame);
      REQUIRE(report);
      if (const auto* ended = std::get_if<message::RankEnded>(&*report)) return ended->outcome;
      REQUIRE_FALSE(std::holds_alternative<message::AgentFailed>(*report));
    }
  };
  JobLaunch job;
  job.job_id = "ddlrun-incarnations";
  job.num_ranks = 1;
  job.node_names = {hostname()};
  job.node_ranks = {{0}};
  job.command = {"/bin/sh", "-c", "exit 3"};
  job.workdir = "/";
  job.shell = own_shell_attributes();
  job.output_window = 4096;
  NodeLaunch node;
  node.ranks.resize(1);
  send(message::LaunchJob{job});
  for (const int incarnation : {0, 1, 2}) {
    node.incarnation = incarnation;
    send(message::Launch{node});
    const RankOutcome outcome = next_end();
    CHECK(outcome.kind == RankOutcome::Kind::kExited);
    CHECK(outcome.exit_code == 3);
    CHECK(outcome.incarnation == incarnation);
  }
  link.first.reset();
  CHECK(reap(agent) == 0);
}
