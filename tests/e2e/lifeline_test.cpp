// Whatever dies: nothing of the job stays, and whoever survives says what happened. ddlrun promises 2 s for that; the
// time itself is measured in bench/, here only the end is waited for, on machines as busy as they may be.
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

/// All of them as nearly at once as one process can.
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

/// A job of 2 ranks, each with grandchildren in sessions of their own; all of it is at work.
class Family {
 public:
  explicit Family(const std::string& temper = "") : job(scratch, command(temper)) {
    job.wait_for("ready", 2);
    agent = job.agent();
    spawner = job.spawner();
    INFO(describe(job.processes()));
    REQUIRE(job.processes().size() == 9);  // head, agent, spawner, and of each rank itself and two daemons
  }

  /// Of one of the ranks. Its daemons bear the same name, but have left the agent's session.
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
  static Command command(const std::string& temper) {
    std::vector<std::string> arguments = {"-np", "2", "--kill-grace", "0.3", program("daemon_family"),
                                          "stay"};
    if (!temper.empty()) arguments.push_back(temper);
    return ddlrun(arguments);
  }
};

/// Both tempers of the ranks and their daemons: those that end when asked to, and those that ignore SIGTERM.
const std::vector<std::string> kTempers = {"", "stubborn"};

TEST_CASE("a rank that is killed takes the others and all their descendants with it", "[lifeline]") {
  for (const auto& [temper, signal] :
       {std::pair<std::string, int>("", SIGKILL), {"", SIGTERM}, {"stubborn", SIGKILL}}) {
    CAPTURE(temper, signal);
    Family family(temper);
    kill_now({family.rank_process()}, signal);
    CHECK(family.job.wait_and_require_nothing_left() == 128 + signal);
    CHECK_THAT(family.job.err(), Contains("was killed by " + signal_text(signal)));
  }
}

TEST_CASE("when the spawner dies, the agent ends everything and says so", "[lifeline]") {
  for (const auto& [temper, signal] :
       {std::pair<std::string, int>("", SIGKILL), {"", SIGABRT}, {"stubborn", SIGKILL}}) {
    CAPTURE(temper, signal);
    Family family(temper);
    kill_now({family.spawner}, signal);
    CHECK(family.job.wait_and_require_nothing_left() == contract::kLostHost);
    CHECK_THAT(family.job.err(), Contains("the spawner (process " + std::to_string(family.spawner) +
                                          ") was killed by " + signal_text(signal)));
  }
}

TEST_CASE("when the agent dies, the spawner ends everything and ddlrun says so", "[lifeline]") {
  for (const auto& [temper, signal] :
       {std::pair<std::string, int>("", SIGKILL), {"", SIGABRT}, {"stubborn", SIGKILL}}) {
    CAPTURE(temper, signal);
    Family family(temper);
    kill_now({family.agent}, signal);
    CHECK(family.job.wait_and_require_nothing_left() == contract::kLostHost);
    CHECK_THAT(family.job.err(), Contains("the agent (process " + std::to_string(family.agent) +
                                          ") was killed by " + signal_text(signal)));
  }
}

TEST_CASE("agent and spawner that are told to end, as a resource manager does, end everything and say so",
          "[lifeline]") {
  for (const std::string& temper : kTempers) {
    CAPTURE(temper);
    Family family(temper);
    kill_now({family.spawner, family.agent}, SIGTERM);
    CHECK(family.job.wait_and_require_nothing_left() == 128 + SIGTERM);
    CHECK_THAT(family.job.err(), Contains("its agent received SIGTERM") && !Contains("lost"));
    CHECK_THAT(family.job.err(), !Contains("ddlrun itself has ended"));
  }
}

TEST_CASE("when ddlrun itself is killed, the agent ends everything and says so", "[lifeline]") {
  for (const std::string& temper : kTempers) {
    CAPTURE(temper);
    Family family(temper);
    kill_now({family.job.pid()}, SIGKILL);
    CHECK(family.job.wait() ==
          128 + SIGKILL);  // and the end of its output: the agent holds standard error to the last
    family.job.require_all_gone();
    CHECK_THAT(family.job.err(), Contains("ddlrun itself has ended; ending 2 ranks"));
  }
}

TEST_CASE("when ddlrun is asked to end, all descendants end", "[lifeline]") {
  for (const std::string& temper : kTempers) {
    CAPTURE(temper);
    Family family(temper);
    family.job.send(SIGTERM);
    CHECK(family.job.wait_and_require_nothing_left() == 128 + SIGTERM);
  }
}

TEST_CASE("when agent and spawner die together, ddlrun ends everything and says so", "[lifeline]") {
  for (const std::string& temper : kTempers) {
    CAPTURE(temper);
    Family family(temper);
    kill_now({family.agent, family.spawner}, SIGKILL);
    CHECK(family.job.wait_and_require_nothing_left() == contract::kLostHost);
    CHECK_THAT(family.job.err(),
               Contains("the agent (process " + std::to_string(family.agent) + ") was killed by SIGKILL"));
  }
}

TEST_CASE("whoever of ddlrun, agent and spawner is stopped and stays so: the others end everything",
          "[lifeline]") {
  // All at once: each takes some seconds.
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
  // Its agent tells it when it can hear.
  for (const Process& process : head.job.processes()) {
    if (process.pid != head.job.pid() && process.pid != head.agent)
      CHECK(wait_for_end_of(process.pid, Deadline::after(kPatience)));
  }
  head.job.send(SIGCONT);
  CHECK(head.job.wait_and_require_nothing_left() == contract::kLostHost);
  CHECK_THAT(head.job.err(), Contains("ddlrun itself was stopped, so the ranks here were ended"));
}

TEST_CASE("when ddlrun and one of the two others die together, the last one ends everything", "[lifeline]") {
  // Which of two deaths is noticed first is a matter of chance, and both orders must do.
  for (const bool head_first : {true, false}) {
    CAPTURE(head_first);
    Family without_agent("stubborn");
    const pid_t head = without_agent.job.pid(), agent = without_agent.agent;
    kill_now(head_first ? std::vector{head, agent} : std::vector{agent, head}, SIGKILL);
    const int status = without_agent.job.wait();
    without_agent.job.require_all_gone();
    // The latter if ddlrun was quicker than the second signal.
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

TEST_CASE("daemons that ranks leave behind are ended when the job is over, which succeeds", "[lifeline]") {
  for (const std::string& temper : kTempers) {
    CAPTURE(temper);
    const Scratch scratch;
    std::vector<std::string> arguments = {
        "-np", "2", "--kill-grace", "0.3", "--json", program("daemon_family"), "exit"};
    if (!temper.empty()) arguments.push_back(temper);
    Job job(scratch, ddlrun(arguments));
    CHECK(job.wait_and_require_nothing_left() == 0);
    CHECK_THAT(job.err(), Contains("\"reason\":\"success\"") && Contains("\"leftovers_ended\":4"));
  }
}

TEST_CASE("a daemon lives as long as the job does, not only as long as its rank", "[lifeline]") {
  const Scratch scratch;
  Fifo go(scratch, "go");
  Job job(scratch, ddlrun({"-np", "2", "sh", "-c",
                           "echo pid$RANK=$$; [ $RANK = 0 ] && exec " + program("daemon_family") +
                               " exit; read go < " + go.path()}));
  job.wait_for("pid1=");
  job.wait_for("ready");
  const std::size_t at = job.out().find("pid0=") + 5;
  REQUIRE(wait_for_end_of(static_cast<pid_t>(std::stol(job.out().substr(at))), Deadline::after(kPatience)));
  // Of rank 0 the daemons are left, of rank 1 the shell.
  CHECK(names(job.processes()) == std::multiset<std::string>{"daemon_family", "daemon_family", "ddl-agent",
                                                             "ddl-spawner", "ddlrun", "sh"});
  go.write("now\n");
  CHECK(job.wait_and_require_nothing_left() == 0);
}

/// Ranks whose workers ignore SIGTERM, have sessions of their own, and start short-lived processes all the time.
class Storm {
 public:
  Storm() : job(scratch, ddlrun({"-np", "2", "--kill-grace", "0.2", program("fork_storm")})) {
    job.wait_for("ready", 2);
  }
  Scratch scratch;
  Job job;
};

TEST_CASE("ranks that fork all the time and do not want to end are ended all the same", "[lifeline]") {
  {
    INFO("ddlrun is asked to end");
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

TEST_CASE("what the shell before ddlrun had started is no part of the job", "[lifeline]") {
  const Scratch scratch;
  Fifo go(scratch, "go");
  // exec makes it a child of ddlrun, which must neither wait for it nor end it.
  Command command;
  command.argv = {"sh", "-c",
                  "sh -c 'echo listening; read go < " + go.path() + "; echo go > " +
                      scratch.path("survived") + "' & exec " + ddlrun({}).argv.front() + " -np 2 " +
                      program("daemon_family") + " exit"};
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

TEST_CASE("ddlrun killed as soon as there is a session directory leaves none", "[lifeline]") {
  for (int time = 0; time < 10; ++time) {
    const Scratch scratch;
    const UniqueFd watch(::inotify_init1(IN_CLOEXEC));
    REQUIRE(::inotify_add_watch(watch.get(), scratch.make_directory("tmp").c_str(), IN_CREATE) >= 0);
    Job job(scratch, ddlrun({"-np", "1", "true"}));
    pollfd entry{watch.get(), POLLIN, 0};
    REQUIRE(::poll(&entry, 1, Deadline::after(kPatience).poll_milliseconds()) == 1);
    job.send(SIGKILL);
    job.require_all_gone();
  }
}

TEST_CASE("ddlrun does not start a job where /proc is missing or another PID namespace's", "[lifeline]") {
  if (::geteuid() != 0) DDL_SKIP("only root makes such namespaces");
  if (std::string_view(DDL_E2E_SANITIZE) != "") DDL_SKIP("a sanitizer needs /proc itself");
  const std::vector<std::pair<std::vector<std::string>, std::string>> places = {
      {{"unshare", "-m", "sh", "-c", "umount -l /proc && exec \"$@\"", "sh"}, "/proc is not mounted"},
      {{"unshare", "-p", "--fork", "--kill-child"}, "/proc is that of another PID namespace"}};
  for (const auto& [place, sentence] : places) {
    const Scratch scratch;
    Command command = ddlrun({"-np", "1", "echo", "started"});
    command.argv.insert(command.argv.begin(), place.begin(), place.end());
    Job job(scratch, command);
    CHECK(job.wait_and_require_nothing_left() == contract::kStartFailure);
    CHECK_THAT(job.err(), Contains("ddlrun: " + sentence + ", and without it"));
    CHECK(job.out().empty());
  }
}

}  // namespace
}  // namespace ddl::e2e
