// Starts and ends as the spawner reports them, signals, and the clean-up when a process dies.
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>

#include <fstream>
#include <map>
#include <set>

#include "base/process_tree.h"
#include "launcher/spawner_harness.h"
#include "support/temporary_directory.h"

using ddl::become_subreaper;
using ddl::descendants_of;
using ddl::kill_descendants;
using ddl::ProcessId;
using namespace ddl::launcher;
using namespace ddl::launcher::test;
using message::AllGone;
using message::ChildEnded;
using message::ChildFailed;
using message::ChildStarted;
using message::Leftovers;

namespace {

// A shell that starts sleepers which called setsid, one of them without its parent, says "ready", and sleeps itself.
const std::vector<std::string> kFamily = {
    "sh", "-c", "setsid sleep 100 & (setsid sleep 100 &); echo ready; exec sleep 100"};

/// Ignores SIGTERM, and so does its setsid grandchild.
const std::vector<std::string> kStubborn = {"sh", "-c",
                                            "trap '' TERM; (setsid sleep 100 &); echo ready; exec sleep 100"};

void spawn_and_wait_for_ready(SpawnerHarness& spawner, int rank, const std::vector<std::string>& argv) {
  auto pipe = test_pipe();
  spawner.spawn(rank, argv, pipe.second.get());
  pipe.second.reset();
  CHECK(spawner.expect<ChildStarted>().rank == rank);
  char ready[6];
  std::size_t got = 0;
  while (got < sizeof ready) {
    const ssize_t more = ::read(pipe.first.get(), ready + got, sizeof ready - got);
    REQUIRE(more > 0);
    got += static_cast<std::size_t>(more);
  }
  CHECK(std::string_view(ready, sizeof ready) == "ready\n");
}

/// Pidfds of all descendants of the spawner, to observe the end of each.
std::vector<ddl::UniqueFd> pidfds_below(pid_t root) {
  std::vector<ddl::UniqueFd> pidfds;
  for (const ProcessId& process : descendants_of(root)) {
    if (auto pidfd = ddl::open_pidfd(process.pid)) pidfds.push_back(std::move(*pidfd));
  }
  return pidfds;
}

/// While it exists, children of new spawners block between fork and exec: each first opens a FIFO.
class HeldStarts {
 public:
  HeldStarts() {
    static const int registered = ::pthread_atfork(nullptr, nullptr, [] {
      if (generations > 0 && --generations == 0) ::close(::open(fifo.c_str(), O_RDONLY | O_CLOEXEC));
    });
    REQUIRE(registered == 0);
    fifo = directory_.path() + "/fifo";
    REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
    generations = 2;
  }
  ~HeldStarts() { generations = 0; }
  /// Lets one child continue, which must have reached the FIFO.
  static void release_one() { ::close(::open(fifo.c_str(), O_WRONLY | O_CLOEXEC)); }

 private:
  static inline std::string fifo;
  static inline int generations = 0;  // of processes, up to the blocked one
  ddl::test::TemporaryDirectory directory_;
};

}  // namespace

TEST_CASE("a signal between a child's fork and its exec reaches the child") {
  const HeldStarts held;
  SpawnerHarness spawner;
  const auto ends_by = [&](const message::AgentToSpawner& asked, int signal) {
    spawner.spawn(0, {"sleep", "100"});
    spawner.send(asked);
    spawner.send(message::ReportGone{});
    // The spawner has handled all messages above.
    CHECK(spawner.expect<Leftovers>().count == 1);
    HeldStarts::release_one();
    spawner.expect<ChildStarted>();
    const int status = spawner.expect<ChildEnded>().wait_status;
    CHECK(WIFSIGNALED(status));
    CHECK(WTERMSIG(status) == signal);
    spawner.expect<AllGone>();
  };
  ends_by(message::AskToEnd{SIGTERM}, SIGTERM);
  ends_by(message::SignalChildren{SIGUSR1}, SIGUSR1);
}

TEST_CASE_METHOD(SpawnerHarness, "a child's end is reported with its status and run time, after its start") {
  spawn(0, {"sh", "-c", "exit 7"});
  const auto started = expect<ChildStarted>();
  CHECK(started.rank == 0);
  CHECK(started.pid > 1);
  const auto exited = expect<ChildEnded>();
  CHECK(exited.rank == 0);
  CHECK(WIFEXITED(exited.wait_status));
  CHECK(WEXITSTATUS(exited.wait_status) == 7);
  CHECK(exited.run_seconds > 0);
  CHECK(exited.run_seconds < 20);

  const pid_t sleeper = spawn_sleeper(1);
  REQUIRE(::kill(sleeper, SIGKILL) == 0);
  const auto killed = expect<ChildEnded>();
  CHECK(killed.rank == 1);
  CHECK(WIFSIGNALED(killed.wait_status));
  CHECK(WTERMSIG(killed.wait_status) == SIGKILL);
}

TEST_CASE_METHOD(SpawnerHarness, "a child's end is reported with its CPU time and its most memory") {
  // tail keeps all that it is to write.
  spawn(0, {"sh", "-c", "head -c 50000000 /dev/zero | tail -c 50000000 | wc -c"});
  expect<ChildStarted>();
  const auto ended = expect<ChildEnded>();
  CHECK(ended.usage.user_seconds + ended.usage.system_seconds > 0);
  CHECK(ended.usage.user_seconds + ended.usage.system_seconds < 20);
  CHECK(ended.usage.peak_resident_bytes > 50'000'000);
  CHECK(ended.usage.peak_resident_bytes < 500'000'000);
}

TEST_CASE_METHOD(SpawnerHarness,
                 "start and end of each of many children that end at once are reported, in this order") {
  constexpr int kChildren = 60;
  for (int rank = 0; rank < kChildren; ++rank) {
    if (rank % 3 == 2) {
      spawn(rank, {"/no/such/command"});
    } else {
      spawn(rank, {"sh", "-c", "exit " + std::to_string(rank)});
    }
  }
  std::map<int, std::string> reported;
  for (int messages = 0; messages < kChildren / 3 * 5; ++messages) {
    const auto message = receive();
    REQUIRE(message);
    if (const auto* started = std::get_if<ChildStarted>(&*message)) {
      reported[started->rank] += "started ";
    } else if (const auto* ended = std::get_if<ChildEnded>(&*message)) {
      reported[ended->rank] += "exited " + std::to_string(WEXITSTATUS(ended->wait_status));
    } else {
      reported[std::get<ChildFailed>(*message).rank] += "failed";
    }
  }
  for (int rank = 0; rank < kChildren; ++rank) {
    CAPTURE(rank);
    CHECK(reported[rank] == (rank % 3 == 2 ? "failed" : "started exited " + std::to_string(rank)));
  }
}

// With a hundred ranks the agent sends Spawns for longer than the spawner's answers fit into the channel.
TEST_CASE_METHOD(SpawnerHarness, "an agent that sends many commands before it reads causes no deadlock") {
  constexpr int kChildren = 300;
  // Large descriptions fill the channel in the other direction, too.
  const std::vector<std::string> environment = {"PATH=/usr/bin:/bin", "LARGE=" + std::string(20'000, 'x')};
  for (int rank = 0; rank < kChildren; ++rank) spawn(ChildSpec{rank, {"true"}, environment, "/"});
  std::set<int> ended;
  while (ended.size() < kChildren) {
    const auto message = receive();
    REQUIRE(message);
    if (const auto* end = std::get_if<ChildEnded>(&*message)) ended.insert(end->rank);
  }
}

TEST_CASE_METHOD(
    SpawnerHarness,
    "of children that are found ended together, those that died by a signal are reported first") {
  // Both end while the spawner is stopped. The kernel would return the older one first.
  auto go = test_pipe();
  spawn(0, {"sh", "-c", "read line; exit 1"}, -1, go.first.get());
  const auto exiting = ddl::open_pidfd(static_cast<pid_t>(expect<ChildStarted>().pid));
  const pid_t sleeper = spawn_sleeper(1);
  const auto dying = ddl::open_pidfd(sleeper);
  REQUIRE(exiting);
  REQUIRE(dying);
  REQUIRE(::kill(pid(), SIGSTOP) == 0);
  int status = 0;
  REQUIRE(::waitpid(pid(), &status, WUNTRACED) == pid());
  write_text(go.second.get(), "go\n");
  REQUIRE(ends_soon(*exiting));
  REQUIRE(::kill(sleeper, SIGSEGV) == 0);
  REQUIRE(ends_soon(*dying));
  REQUIRE(::kill(pid(), SIGCONT) == 0);
  CHECK(expect<ChildEnded>().rank == 1);
  CHECK(expect<ChildEnded>().rank == 0);
}

TEST_CASE_METHOD(SpawnerHarness,
                 "a forwarded signal reaches the whole process group of a rank, and no other process") {
  auto pipe = test_pipe();
  // The shell and its child, one group, each print the signal; the process that called setsid must not get it.
  spawn(0,
        {"sh", "-c",
         "setsid sh -c 'trap \"echo stranger\" USR1; echo ready; while :; do sleep 100 & wait; done' & "
         "sh -c 'trap \"echo child; exit\" USR1; echo ready; sleep 100 & wait' & "
         "trap 'echo leader' USR1; echo ready; wait $!; wait $!; exit 0"},
        pipe.second.get());
  pipe.second.reset();
  expect<ChildStarted>();
  const auto read_lines = [&](std::size_t count) {
    std::multiset<std::string> lines;
    std::string line;
    while (lines.size() < count) {
      char byte;
      REQUIRE(::read(pipe.first.get(), &byte, 1) == 1);
      if (byte == '\n') {
        lines.insert(std::exchange(line, ""));
      } else {
        line += byte;
      }
    }
    return lines;
  };
  CHECK(read_lines(3).count("ready") == 3);
  send(message::SignalChildren{SIGUSR1});
  CHECK(read_lines(2) == std::multiset<std::string>{"child", "leader"});
  CHECK(expect<ChildEnded>().rank == 0);
}

TEST_CASE_METHOD(SpawnerHarness, "AskToEnd includes processes that called setsid") {
  spawn_and_wait_for_ready(*this, 0, kFamily);
  const auto below = pidfds_below(pid());
  CHECK(below.size() >= 3);
  send(message::AskToEnd{SIGTERM});
  for (const auto& pidfd : below) CHECK(ends_soon(pidfd));
  CHECK(WTERMSIG(expect<ChildEnded>().wait_status) == SIGTERM);
}

// A SIGCONT cancels the SIGSTOP by which a debugger, or a leak checker at the end of a rank, attaches.
TEST_CASE_METHOD(SpawnerHarness, "AskToEnd sends SIGCONT only to stopped processes") {
  const std::vector<std::string> listener = {
      "sh", "-c",
      "trap 'echo continued' CONT; trap 'echo asked' TERM; trap 'echo over; exit' WINCH; echo ready; "
      "while :; do sleep 100 & wait; done"};
  const bool stopped = GENERATE(false, true);
  auto pipe = test_pipe();
  spawn(0, listener, pipe.second.get());
  pipe.second.reset();
  const auto pid = static_cast<pid_t>(expect<ChildStarted>().pid);
  const auto read_line = [&] {
    std::string line;
    for (char byte = 0; byte != '\n'; line += byte) REQUIRE(::read(pipe.first.get(), &byte, 1) == 1);
    return line;
  };
  CHECK(read_line() == "ready\n");
  if (stopped) {
    REQUIRE(::kill(pid, SIGSTOP) == 0);
    CHECK(expect<message::ChildStopped>().signal == SIGSTOP);
  }
  send(message::AskToEnd{SIGTERM});
  // The shell runs the traps of signals that came together by their numbers.
  CHECK(read_line() == "asked\n");
  if (stopped) {
    CHECK(read_line() == "continued\n");
    CHECK(expect<message::ChildStopped>().signal == 0);
  }
  send(message::SignalChildren{SIGWINCH});
  CHECK(read_line() == "over\n");
  expect<ChildEnded>();
}

TEST_CASE_METHOD(SpawnerHarness, "KillAll leaves no process, and ReportGone confirms it") {
  spawn_and_wait_for_ready(*this, 0, kFamily);
  spawn_and_wait_for_ready(*this, 1, kStubborn);
  const auto below = pidfds_below(pid());
  CHECK(below.size() >= 5);
  send(message::KillAll{});
  for (const auto& pidfd : below) CHECK(ends_soon(pidfd));
  for (int i = 0; i < 2; ++i) CHECK(WTERMSIG(expect<ChildEnded>().wait_status) == SIGKILL);
  send(message::ReportGone{});
  // A killed process may not be reaped yet, and then counts.
  auto message = receive();
  REQUIRE(message);
  if (std::holds_alternative<Leftovers>(*message)) message = receive();
  REQUIRE(message);
  CHECK(std::holds_alternative<AllGone>(*message));
  CHECK(descendants_of(pid()).empty());
}

TEST_CASE_METHOD(SpawnerHarness,
                 "ReportGone is answered by AllGone at once if no process is left, and each time") {
  for (int time = 0; time < 2; ++time) {
    send(message::ReportGone{});
    expect<AllGone>();
  }
  spawn(0, {"true"});
  expect<ChildStarted>();
  expect<ChildEnded>();
  send(message::ReportGone{});
  expect<AllGone>();
}

TEST_CASE_METHOD(SpawnerHarness,
                 "a process that outlives its rank is reported as a leftover, and AllGone waits for it") {
  auto stop = test_pipe();
  // The shell ends; its child, another session, lives until the pipe closes.
  spawn(0, {"sh", "-c", "exec 3<&0; setsid cat <&3 >/dev/null & exit 0"}, -1, stop.first.get());
  stop.first.reset();
  expect<ChildStarted>();
  CHECK(expect<ChildEnded>().wait_status == 0);
  send(message::ReportGone{});
  CHECK(expect<Leftovers>().count == 1);
  stop.second.reset();
  expect<AllGone>();
}

TEST_CASE_METHOD(SpawnerHarness,
                 "when the agent is gone, all descendants end and the session directory is removed") {
  spawn_and_wait_for_ready(*this, 0, kFamily);
  spawn_and_wait_for_ready(*this, 1, kStubborn);
  std::ofstream(directory + "/file") << "x";
  const auto below = pidfds_below(pid());
  CHECK(below.size() >= 5);
  close_channel();
  const int status = wait_for_end();
  CHECK(WIFEXITED(status));
  for (const auto& pidfd : below) CHECK(ddl::has_ended(pidfd.get()));
  CHECK_FALSE(std::filesystem::exists(directory));
  CHECK(descendants_of(::getpid()).empty());
}

TEST_CASE_METHOD(SpawnerHarness,
                 "the spawner makes the session directory, and removes it after the agent's end") {
  CHECK(std::filesystem::is_directory(directory));
  close_channel();
  wait_for_end();
  CHECK_FALSE(std::filesystem::exists(directory));
}

TEST_CASE("a spawner does not take a session directory that is there already") {
  become_subreaper();
  const std::string directory = new_session_directory_name().value();
  REQUIRE(make_session_directory(directory));
  const auto started = start_spawner(directory, open_files_limit());
  REQUIRE_FALSE(started);
  CHECK_THAT(started.error().message(), Catch::Contains("mkdir " + directory + ": File exists"));
  kill_descendants(soon());
  CHECK(std::filesystem::is_directory(directory));
  remove_session_directory(directory);
}

TEST_CASE_METHOD(SpawnerHarness, "when the agent is gone, ranks get SIGTERM before SIGKILL") {
  auto pipe = test_pipe();
  spawn(0, {"sh", "-c", "trap 'echo saved; exit 0' TERM; echo ready; sleep 100 & wait"}, pipe.second.get());
  pipe.second.reset();
  expect<ChildStarted>();
  char ready[6];
  REQUIRE(::read(pipe.first.get(), ready, sizeof ready) == sizeof ready);
  close_channel();
  CHECK(read_to_end(pipe.first.get()) == "saved\n");
  wait_for_end();
}

TEST_CASE_METHOD(SpawnerHarness, "an invalid message has the effect of the end of the agent") {
  spawn_and_wait_for_ready(*this, 0, kFamily);
  const auto below = pidfds_below(pid());
  send_raw(std::string(64, '!'));
  wait_for_end();
  for (const auto& pidfd : below) CHECK(ddl::has_ended(pidfd.get()));
}

TEST_CASE_METHOD(SpawnerHarness, "a message of another direction has the effect of the end of the agent") {
  spawn_and_wait_for_ready(*this, 0, kFamily);
  const auto below = pidfds_below(pid());
  const ddl::net::Frame frame = message::encode<message::HeadToAgent>(message::StdinEof{});
  std::string bytes;
  ddl::net::append_frame(bytes, frame.type, frame.payload);
  send_raw(bytes);
  wait_for_end();
  for (const auto& pidfd : below) CHECK(ddl::has_ended(pidfd.get()));
}

TEST_CASE("a spawner that sends an invalid message is killed and lost, with the reason") {
  auto ends = test_socket_pair();
  const pid_t spawner = fork_process([&] {
    ends.first.reset();
    const ddl::net::Frame frame = message::encode<message::HeadToAgent>(message::Finish{});
    std::string bytes;
    ddl::net::append_frame(bytes, frame.type, frame.payload);
    (void)ddl::write_all(ends.second.get(), bytes.data(), bytes.size());
    sleep_for_ever();
  });
  ends.second.reset();
  EventLoop loop;
  SpawnerChannel channel(loop, {spawner, std::move(ends.first)});
  channel.start({[](const message::SpawnerToAgent&) {}, [&loop] { loop.stop(); }});
  loop.run();
  CHECK(channel.how_it_ended() ==
        "sent a message of type Finish, which does not go from spawner to agent, and was killed");
}

TEST_CASE_METHOD(SpawnerHarness,
                 "the spawner's children die with it, and their orphans become children of the agent") {
  spawn_and_wait_for_ready(*this, 0, kFamily);
  const pid_t sleeper = spawn_sleeper(1);
  const auto sleeper_pidfd = ddl::open_pidfd(sleeper);
  REQUIRE(sleeper_pidfd);
  const auto below = pidfds_below(pid());
  REQUIRE(::kill(pid(), SIGKILL) == 0);
  CHECK(receive() == std::nullopt);
  CHECK(ends_soon(*sleeper_pidfd));  // PR_SET_PDEATHSIG
  kill_descendants(soon());          // as the agent does
  for (const auto& pidfd : below) CHECK(ddl::has_ended(pidfd.get()));
}
