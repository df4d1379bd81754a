// If any process of ddlrun dies, no process of the job remains, and a surviving process reports the cause. ddlrun
// guarantees 2 s for this; the time is measured in bench/. These tests only wait for the end, because the machine may
// be loaded.
#include <poll.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <csignal>
#include <set>

#include "base/process.h"
#include "base/text.h"
#include "contract/ddlrun.h"
#include "e2e/harness/fifo.h"
#include "e2e/harness/job.h"
#include "support/catch.h"
#include "support/skip.h"

namespace ddl::e2e {
namespace {

using Catch::Matchers::Contains;

/// Sends the signal to all of them, as close together as one process can.
void kill_now(const std::vector<pid_t>& pids, int signal) {
  std::vector<UniqueFd> pidfds;
  for (const pid_t pid : pids) {
    auto pidfd = open_pidfd(pid);
    REQUIRE(pidfd);
    pidfds.push_back(std::move(*pidfd));
  }
  for (const UniqueFd& pidfd : pidfds) (void)send_signal(pidfd.get(), signal);
}

std::multiset<std::string> names(const std::vector<Process>& processes) {
  std::multiset<std::string> names;
  for (const Process& process : processes) names.insert(process.name);
  return names;
}

/// A job of 2 ranks, each with grandchildren in their own sessions; all of them are running.
class Family {
 public:
  explicit Family(const std::string& mode = "") : job(scratch, command(mode)) {
    job.wait_for("ready", 2);
    agent = job.agent();
    spawner = job.spawner();
    INFO(describe(job.processes()));
    REQUIRE(job.processes().size() == 9);  // head, agent, spawner, and two ranks with two daemons each
  }

  /// One of the ranks. Its daemons have the same name, but have left the agent's session.
  pid_t rank_process() const {
    for (const Process& process : job.processes()) {
      if (process.name == "daemon_family" && ::getsid(process.pid) == ::getsid(agent)) return process.pid;
    }
    FAIL("no rank in the agent's session");
    return 0;
  }

  Scratch scratch;
  Job job;
  pid_t agent = 0;
  pid_t spawner = 0;

 private:
  static Command command(const std::string& mode) {
    std::vector<std::string> arguments = {"-np", "2", "--kill-grace", "0.3", program("daemon_family"),
                                          "stay"};
    if (!mode.empty()) arguments.push_back(mode);
    return ddlrun(arguments);
  }
};

/// The two kinds of ranks and daemons: those that end after SIGTERM, and those that ignore it ("stubborn").
const std::vector<std::string> kModes = {"", "stubborn"};

TEST_CASE("after a rank is killed, the other ranks and all descendants are ended", "[lifeline]") {
  for (const auto& [mode, signal] :
       {std::pair<std::string, int>("", SIGKILL), {"", SIGTERM}, {"stubborn", SIGKILL}}) {
    CAPTURE(mode, signal);
    Family family(mode);
    kill_now({family.rank_process()}, signal);
    CHECK(family.job.wait_and_require_nothing_left() == 128 + signal);
    CHECK_THAT(family.job.err(), Contains("was killed by " + signal_text(signal)));
  }
}

TEST_CASE("after the spawner dies, the agent ends all processes and the report names the spawner",
          "[lifeline]") {
  for (const auto& [mode, signal] :
       {std::pair<std::string, int>("", SIGKILL), {"", SIGABRT}, {"stubborn", SIGKILL}}) {
    CAPTURE(mode, signal);
    Family family(mode);
    kill_now({family.spawner}, signal);
    CHECK(family.job.wait_and_require_nothing_left() == contract::kLostHost);
    CHECK_THAT(family.job.err(), Contains("the spawner (process " + std::to_string(family.spawner) +
                                          ") was killed by " + signal_text(signal)));
  }
}

TEST_CASE("after the agent dies, the spawner ends all processes and ddlrun reports it", "[lifeline]") {
  for (const auto& [mode, signal] :
       {std::pair<std::string, int>("", SIGKILL), {"", SIGABRT}, {"stubborn", SIGKILL}}) {
    CAPTURE(mode, signal);
    Family family(mode);
    kill_now({family.agent}, signal);
    CHECK(family.job.wait_and_require_nothing_left() == contract::kLostHost);
    CHECK_THAT(family.job.err(), Contains("the agent (process " + std::to_string(family.agent) +
                                          ") was killed by " + signal_text(signal)));
  }
}

TEST_CASE(
    "after SIGTERM to agent and spawner, as from a resource manager, all processes end and this is reported",
    "[lifeline]") {
  for (const std::string& mode : kModes) {
    CAPTURE(mode);
    Family family(mode);
    kill_now({family.spawner, family.agent}, SIGTERM);
    CHECK(family.job.wait_and_require_nothing_left() == 128 + SIGTERM);
    CHECK_THAT(family.job.err(), Contains("its agent received SIGTERM") && !Contains("lost"));
    CHECK_THAT(family.job.err(), !Contains("ddlrun itself has ended"));
  }
}

TEST_CASE("after ddlrun itself is killed, the agent ends all processes and reports it", "[lifeline]") {
  for (const std::string& mode : kModes) {
    CAPTURE(mode);
    Family family(mode);
    kill_now({family.job.pid()}, SIGKILL);
    // wait() also waits for the end of the output: the agent has standard error open until its end.
    CHECK(family.job.wait() == 128 + SIGKILL);
    family.job.require_all_gone();
    CHECK_THAT(family.job.err(), Contains("ddlrun itself has ended; ending 2 ranks"));
  }
}

TEST_CASE("after SIGTERM to ddlrun, all descendants end", "[lifeline]") {
  for (const std::string& mode : kModes) {
    CAPTURE(mode);
    Family family(mode);
    family.job.send(SIGTERM);
    CHECK(family.job.wait_and_require_nothing_left() == 128 + SIGTERM);
  }
}

TEST_CASE("after agent and spawner die together, ddlrun ends all processes and reports it", "[lifeline]") {
  for (const std::string& mode : kModes) {
    CAPTURE(mode);
    Family family(mode);
    kill_now({family.agent, family.spawner}, SIGKILL);
    CHECK(family.job.wait_and_require_nothing_left() == contract::kLostHost);
    CHECK_THAT(family.job.err(),
               Contains("the agent (process " + std::to_string(family.agent) + ") was killed by SIGKILL"));
  }
}

TEST_CASE("if ddlrun, the agent or the spawner is stopped and not continued, the others end the job",
          "[lifeline]") {
  // All four jobs at once, because each takes some seconds.
  Family agent("stubborn"), spawner("stubborn"), both("stubborn"), head("stubborn");
  kill_now({agent.agent, spawner.spawner, both.agent, both.spawner, head.job.pid()}, SIGSTOP);
  CHECK(agent.job.wait_and_require_nothing_left() == contract::kLostHost);
  CHECK_THAT(agent.job.err(),
             Contains("the agent (process " + std::to_string(agent.agent) + ") was stopped"));
  CHECK(spawner.job.wait_and_require_nothing_left() == contract::kLostHost);
  CHECK_THAT(spawner.job.err(), Contains("the spawner (process " + std::to_string(spawner.spawner) +
                                         ") was stopped, and was killed"));
  CHECK(both.job.wait_and_require_nothing_left() == contract::kLostHost);
  CHECK_THAT(both.job.err(), Contains("the agent (process " + std::to_string(both.agent) + ") was stopped"));
  // The agent remains, and notifies ddlrun when it is continued.
  for (const Process& process : head.job.processes()) {
    if (process.pid != head.job.pid() && process.pid != head.agent)
      CHECK(wait_for_end_of(process.pid, Deadline::after(kTestTimeout)));
  }
  head.job.send(SIGCONT);
  CHECK(head.job.wait_and_require_nothing_left() == contract::kLostHost);
  CHECK_THAT(head.job.err(), Contains("ddlrun itself was stopped, so the ranks here were ended"));
}

TEST_CASE("after ddlrun dies together with agent or spawner, the remaining process ends all others",
          "[lifeline]") {
  // It is random which of two deaths is noticed first, and both orders must work.
  for (const bool head_first : {true, false}) {
    CAPTURE(head_first);
    Family without_agent("stubborn");
    const pid_t head = without_agent.job.pid(), agent = without_agent.agent;
    kill_now(head_first ? std::vector{head, agent} : std::vector{agent, head}, SIGKILL);
    const int status = without_agent.job.wait();
    without_agent.job.require_all_gone();
    // kLostHost if ddlrun noticed the first death before the second signal.
    CHECK((status == 128 + SIGKILL || (!head_first && status == contract::kLostHost)));
  }
  for (const bool head_first : {true, false}) {
    CAPTURE(head_first);
    Family without_spawner("stubborn");
    const pid_t head = without_spawner.job.pid(), spawner = without_spawner.spawner;
    kill_now(head_first ? std::vector{head, spawner} : std::vector{spawner, head}, SIGKILL);
    const int status = without_spawner.job.wait();
    without_spawner.job.require_all_gone();
    CHECK((status == 128 + SIGKILL || (!head_first && status == contract::kLostHost)));
  }
}

TEST_CASE("daemons that ranks leave behind are ended after the job, which succeeds", "[lifeline]") {
  for (const std::string& mode : kModes) {
    CAPTURE(mode);
    const Scratch scratch;
    std::vector<std::string> arguments = {
        "-np", "2", "--kill-grace", "0.3", "--json", program("daemon_family"), "exit"};
    if (!mode.empty()) arguments.push_back(mode);
    Job job(scratch, ddlrun(arguments));
    CHECK(job.wait_and_require_nothing_left() == 0);
    CHECK_THAT(job.err(), Contains("\"reason\":\"success\"") && Contains("\"leftovers_ended\":4"));
  }
}

TEST_CASE("a job ends with the process that --end-with names, however that ends", "[lifeline]") {
  const Scratch scratch;
  Command sleeping;
  sleeping.argv = {"sleep", "1000"};
  Job caller(scratch, sleeping);
  Job job(scratch, ddlrun({"-np", "2", "--kill-grace", "0.3", "--end-with", std::to_string(caller.pid()),
                           program("daemon_family"), "stay"}));
  job.wait_for("ready", 2);
  caller.send(SIGKILL);
  CHECK(job.wait_and_require_nothing_left() == contract::kSignalBase + SIGTERM);
  CHECK_THAT(job.err(),
             Contains("process " + std::to_string(caller.pid()) + " has ended, and the job with it"));
  CHECK(caller.wait() == 128 + SIGKILL);
  Job late(scratch, ddlrun({"-np", "2", "--end-with", std::to_string(caller.pid()), "true"}));
  CHECK(late.wait() == contract::kUsageError);
  CHECK_THAT(late.err(), Contains("--end-with: there is no process "));
}

TEST_CASE("a daemon of a rank is ended with the job, not with its rank", "[lifeline]") {
  const Scratch scratch;
  Fifo go(scratch, "go");
  Job job(scratch, ddlrun({"-np", "2", "sh", "-c",
                           "echo pid$RANK=$$; [ $RANK = 0 ] && exec " + program("daemon_family") +
                               " exit; read go < " + go.path()}));
  job.wait_for("pid1=");
  job.wait_for("ready");
  const std::size_t at = job.out().find("pid0=") + 5;
  REQUIRE(
      wait_for_end_of(static_cast<pid_t>(std::stol(job.out().substr(at))), Deadline::after(kTestTimeout)));
  // The daemons of rank 0 and the shell of rank 1 are left.
  CHECK(names(job.processes()) == std::multiset<std::string>{"daemon_family", "daemon_family", "ddl-agent",
                                                             "ddl-spawner", "ddlrun", "sh"});
  go.write("now\n");
  CHECK(job.wait_and_require_nothing_left() == 0);
}

/// Ranks whose workers ignore SIGTERM, have their own sessions, and start short-lived processes continuously.
class Storm {
 public:
  Storm() : job(scratch, ddlrun({"-np", "2", "--kill-grace", "0.2", program("fork_storm")})) {
    job.wait_for("ready", 2);
  }
  Scratch scratch;
  Job job;
};

TEST_CASE("ranks that ignore SIGTERM and fork continuously are ended", "[lifeline]") {
  {
    INFO("ddlrun gets SIGTERM");
    Storm storm;
    storm.job.send(SIGTERM);
    CHECK(storm.job.wait_and_require_nothing_left() == 128 + SIGTERM);
  }
  {
    INFO("ddlrun is killed");
    Storm storm;
    kill_now({storm.job.pid()}, SIGKILL);
    CHECK(storm.job.wait() == 128 + SIGKILL);
    storm.job.require_all_gone();
  }
  {
    INFO("the agent is killed");
    Storm storm;
    kill_now({storm.job.agent()}, SIGKILL);
    CHECK(storm.job.wait_and_require_nothing_left() == contract::kLostHost);
  }
  {
    INFO("the spawner is killed");
    Storm storm;
    kill_now({storm.job.spawner()}, SIGKILL);
    CHECK(storm.job.wait_and_require_nothing_left() == contract::kLostHost);
  }
}

TEST_CASE("children of the shell that became ddlrun by exec do not belong to the job", "[lifeline]") {
  const Scratch scratch;
  Fifo go(scratch, "go");
  // After exec the background shell is a child of ddlrun, which must neither wait for it nor end it.
  Command command;
  command.argv = {"sh", "-c",
                  "sh -c 'echo listening; read go < " + go.path() + "; echo go > " +
                      scratch.path("survived") + "' & exec " + ddlrun({}).argv.front() +
                      " --oversubscribe -np 2 " + program("daemon_family") + " exit"};
  Job job(scratch, command);
  job.wait_for("listening");
  job.wait_for("ready", 2);
  CHECK(job.wait_for_exit() == 0);
  CHECK(names(job.processes()) == std::multiset<std::string>{"sh"});
  go.write("now\n");
  job.wait();
  job.require_all_gone();
  CHECK(bytes_of(scratch.path("survived")) == "go\n");
}

/// Kills ddlrun, or ddlrun and its agent, as soon as there is a session directory.
void kill_right_after_making_it(int times, bool with_agent) {
  for (int time = 0; time < times; ++time) {
    CAPTURE(time);
    const Scratch scratch;
    const UniqueFd watch(::inotify_init1(IN_CLOEXEC));
    REQUIRE(::inotify_add_watch(watch.get(), scratch.make_directory("tmp").c_str(), IN_CREATE) >= 0);
    // A rank that has ended would end the agent.
    Job job(scratch, ddlrun({"-np", "1", "tail", "-f", "/dev/null"}));
    pollfd entry{watch.get(), POLLIN, 0};
    std::vector<pid_t> victims = {job.pid()};
    REQUIRE(::poll(&entry, 1, Deadline::after(kTestTimeout).poll_milliseconds()) == 1);
    if (with_agent) victims.push_back(job.agent());
    kill_now(victims, SIGKILL);
    job.require_all_gone();
  }
}

TEST_CASE("ddlrun leaves no session directory if it is killed right after making it", "[lifeline]") {
  kill_right_after_making_it(10, false);
}

TEST_CASE("ddlrun leaves no session directory if it is killed with its agent right after making it",
          "[lifeline]") {
  kill_right_after_making_it(10, true);
}

TEST_CASE("ddlrun leaves no session directory after three hundred early kills", "[many_early_kills]") {
  kill_right_after_making_it(300, true);
}

TEST_CASE("ddlrun starts no job if /proc is missing or belongs to another PID namespace", "[lifeline]") {
  if (::geteuid() != 0) DDL_SKIP("only root makes such namespaces");
  if (std::string_view(DDL_E2E_SANITIZE) != "") DDL_SKIP("a sanitizer needs /proc itself");
  const std::vector<std::pair<std::vector<std::string>, std::string>> wrappers = {
      {{"unshare", "-m", "sh", "-c", "umount -l /proc && exec \"$@\"", "sh"}, "/proc is not mounted"},
      {{"unshare", "-p", "--fork", "--kill-child"}, "/proc is that of another PID namespace"}};
  for (const auto& [wrapper, sentence] : wrappers) {
    const Scratch scratch;
    Command command = ddlrun({"-np", "1", "echo", "started"});
    command.argv.insert(command.argv.begin(), wrapper.begin(), wrapper.end());
    Job job(scratch, command);
    CHECK(job.wait_and_require_nothing_left() == contract::kStartFailure);
    CHECK_THAT(job.err(), Contains("ddlrun: " + sentence + ", and without it"));
    CHECK(job.out().empty());
  }
}

}  // namespace
}  // namespace ddl::e2e
