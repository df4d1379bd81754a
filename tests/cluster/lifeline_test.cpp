// If any process dies or is stopped on any host, no process of the job remains on any, and ddlrun reports what failed
// and where.
//
// ddlrun guarantees 2 s for this, and 5 s if only missing heartbeats show the loss, besides --kill-grace, on a machine
// that is not overloaded. The time is printed but not checked: ddlrun ignores silence while a machine is overloaded, and this one
// may be.
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>

#include "base/process.h"
#include "base/text.h"
#include "cluster/harness/cluster.h"
#include "cluster/harness/host_job.h"
#include "contract/ddlrun.h"
#include "support/catch.h"

namespace ddl::cluster {
namespace {

using Catch::Matchers::Contains;
using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

/// A job of two ranks on each of two hosts, each with two daemons in their own sessions; all of them are running.
class Family {
 public:
  explicit Family(const std::string& mode = "") : job_(arguments(mode)) { job_.job().wait_for("ready", 4); }

  HostJob& job() { return job_; }
  const std::string& err() const { return job_.err(); }

  /// The only process with this name on the host.
  pid_t process(const std::string& name, const std::string& host) const {
    const auto found = job_.processes(name, host);
    INFO(name << " on " << host << ": " << describe(found));
    REQUIRE(found.size() == 1);
    return found.front().pid;
  }
  /// A rank on the host. Its daemons have the same name, but have left the agent's session.
  pid_t rank(const std::string& host) const {
    const pid_t session = ::getsid(process("ddl-agent", host));
    for (const HostProcess& process : job_.processes("daemon_family", host)) {
      if (::getsid(process.pid) == session) return process.pid;
    }
    FAIL("no rank on " << host);
    return 0;
  }
  /// The ssh client here for the host; sshd_on() is the process of the login's server there.
  pid_t ssh_to(const std::string& host) const {
    for (const HostProcess& process : job_.processes("ssh", "head")) {
      if (process.command.find(" " + host + " ") != std::string::npos) return process.pid;
    }
    FAIL("no ssh to " << host);
    return 0;
  }
  /// The process of the session: the younger one if sshd has separated privileges.
  pid_t sshd_on(const std::string& host) const {
    const auto found = job_.processes("sshd", host);
    REQUIRE_FALSE(found.empty());
    return found.back().pid;
  }

  void send(pid_t pid, int signal) {
    const auto pidfd = open_pidfd(pid);
    REQUIRE(pidfd);
    began_ = Clock::now();
    REQUIRE(send_signal(pidfd->get(), signal));
  }
  void begin_now() { began_ = Clock::now(); }

  /// Waits until all processes of the job are gone; then the exit code.
  int end(const std::string& what) {
    const auto left = job_.before().wait_until_nothing_left(Deadline::after(e2e::kTestTimeout));
    const auto took = Clock::now() - began_;
    INFO(what << ", standard error:\n" << err());
    REQUIRE(describe(left) == "");
    std::printf("%s: nothing was left after %.2f s\n", what.c_str(),
                std::chrono::duration<double>(took).count());
    return job_.wait();
  }

 private:
  static std::vector<std::string> arguments(const std::string& mode) {
    std::vector<std::string> words = {
        "-np", "4", "-H", "node1:2,node2:2", "--kill-grace", "0.3", e2e::program("daemon_family"), "stay"};
    if (!mode.empty()) words.push_back(mode);
    return words;
  }

  HostJob job_;
  Clock::time_point began_ = Clock::now();
};

/// The two kinds of ranks and daemons: those that end after SIGTERM, and those that ignore it ("stubborn").
const std::vector<std::string> kModes = {"", "stubborn"};

TEST_CASE("after a rank is killed, the ranks of all hosts end", "[lifeline]") {
  for (const std::string& mode : kModes) {
    Family family(mode);
    family.send(family.rank("node2"), SIGKILL);
    CHECK(family.end("kill a rank " + mode) == 128 + SIGKILL);
    CHECK_THAT(family.err(), Contains(" on node2") && Contains("was killed by SIGKILL"));
  }
}

TEST_CASE("after the spawner of a host is killed, the ranks of all hosts end and ddlrun reports it",
          "[lifeline]") {
  for (const std::string& mode : kModes) {
    Family family(mode);
    family.send(family.process("ddl-spawner", "node2"), SIGKILL);
    CHECK(family.end("kill a spawner " + mode) == contract::kLostHost);
    CHECK_THAT(family.err(),
               Contains("node2: ") && Contains("the spawner") && Contains("was killed by SIGKILL"));
  }
}

TEST_CASE("after the agent of a host is killed, the ranks of all hosts end and ddlrun reports it",
          "[lifeline]") {
  for (const std::string& mode : kModes) {
    Family family(mode);
    family.send(family.process("ddl-agent", "node2"), SIGKILL);
    CHECK(family.end("kill an agent " + mode) == contract::kLostHost);
    CHECK_THAT(family.err(), Contains("node2: its agent was killed"));
  }
}

TEST_CASE("after ddlrun itself is killed, the agents of all hosts end all processes", "[lifeline]") {
  for (const std::string& mode : kModes) {
    Family family(mode);
    family.send(family.job().job().pid(), SIGKILL);
    CHECK(family.end("kill ddlrun " + mode) == 128 + SIGKILL);
  }
}

TEST_CASE("after SIGINT or SIGTERM to ddlrun, all processes on all hosts end", "[lifeline]") {
  for (const int signal : {SIGINT, SIGTERM}) {
    Family family("stubborn");
    family.send(family.job().job().pid(), signal);
    CHECK(family.end("signal " + std::to_string(signal) + " to ddlrun") == 128 + signal);
  }
}

TEST_CASE("after ssh or sshd of a connection is killed, the ranks of all hosts end and ddlrun reports it",
          "[lifeline]") {
  {
    Family family("stubborn");
    family.send(family.ssh_to("node2"), SIGKILL);
    CHECK(family.end("kill ssh") == contract::kLostHost);
    CHECK_THAT(family.err(), Contains("node2: ssh was killed by SIGKILL"));
  }
  {
    Family family("stubborn");
    family.send(family.sshd_on("node2"), SIGKILL);
    CHECK(family.end("kill sshd's child") == contract::kLostHost);
    CHECK_THAT(family.err(), Contains("node2: ") && Contains("ssh"));
  }
}

/// libddl ranks on two hosts. After those of the second host are killed, those of the first one exit with an error,
/// and ddlrun is notified of this first, because the process that forwards the second host's messages is stopped.
class WorkingPair {
 public:
  WorkingPair() { job_.job().wait_for("ready", 4); }

  /// Kills a process of the second host, the youngest of this name. Returns the exit code.
  int kill(const std::string& name) {
    const auto found = job_.processes(name, "node2");
    REQUIRE_FALSE(found.empty());
    signal(found.back().pid, SIGKILL);
    return job_.wait();
  }
  /// Stops one process, kills the other, waits until the first host's ranks have ended, and continues the stopped
  /// one. Returns the exit code.
  int kill_behind(const std::string& stopped, const std::string& killed) {
    const auto held = job_.processes(stopped, "node2"), dying = job_.processes(killed, "node2");
    REQUIRE_FALSE(held.empty());
    REQUIRE_FALSE(dying.empty());
    signal(held.back().pid, SIGSTOP);
    signal(dying.front().pid, SIGKILL);
    const auto left = job_.before().wait_until_none_left(
        [](const HostProcess& process) { return process.host == "node1" && process.name == "ddl_program"; },
        Deadline::after(e2e::kTestTimeout));
    CHECK(describe(left) == "");
    signal(held.back().pid, SIGCONT);
    return job_.wait();
  }
  const std::string& err() const { return job_.err(); }

 private:
  static void signal(pid_t pid, int signal) {
    const auto pidfd = open_pidfd(pid);
    REQUIRE(pidfd);
    REQUIRE(send_signal(pidfd->get(), signal));
  }
  HostJob job_{{"-np", "4", "-H", "node1:2,node2:2", e2e::program("ddl_program"), "work"}};
};

TEST_CASE("the first failure is the cause of the other exits of a libddl job, even if it is reported last",
          "[lifeline]") {
  {
    WorkingPair job;
    CHECK(job.kill_behind("ddl-agent", "ddl_program") == 128 + SIGKILL);
    CHECK_THAT(job.err(), Contains(" on node2") && Contains("was killed by SIGKILL"));
  }
  for (const std::string killed : {"ddl-agent", "ddl-spawner"}) {
    WorkingPair job;
    CHECK(job.kill_behind("sshd", killed) == contract::kLostHost);
    CHECK_THAT(job.err(), Contains("ddlrun: node2: "));
  }
}

TEST_CASE("a libddl job whose agent or sshd on a host is killed ends, and ddlrun reports the host",
          "[lifeline]") {
  for (const std::string killed : {"ddl-agent", "sshd"}) {
    CAPTURE(killed);
    WorkingPair job;
    CHECK(job.kill(killed) == contract::kLostHost);
    CHECK_THAT(job.err(), Contains("ddlrun: node2: "));
  }
}

TEST_CASE("a rank that is stopped and not continued ends the job", "[lifeline]") {
  Family family;
  family.send(family.rank("node2"), SIGSTOP);
  CHECK(family.end("stop a rank") == 128 + SIGSTOP);
  CHECK_THAT(family.err(), Contains(" on node2") && Contains("stopped"));
}

TEST_CASE("a stopped agent or spawner of a host is detected by missing heartbeats", "[lifeline]") {
  for (const std::string name : {"ddl-agent", "ddl-spawner"}) {
    Family family("stubborn");
    family.send(family.process(name, "node2"), SIGSTOP);
    CHECK(family.end("stop " + name) == contract::kLostHost);
    CHECK_THAT(family.err(), Contains("node2: "));
  }
}

TEST_CASE("a stopped ssh or sshd of a connection is detected by missing heartbeats", "[lifeline]") {
  {
    Family family("stubborn");
    family.send(family.ssh_to("node2"), SIGSTOP);
    CHECK(family.end("stop ssh") == contract::kLostHost);
    CHECK_THAT(family.err(), Contains("node2: nothing has been heard"));
  }
  {
    Family family("stubborn");
    const pid_t sshd = family.sshd_on("node2");
    family.job().before().without_sshd_on("node2");  // sshd is stopped itself
    family.send(sshd, SIGSTOP);
    CHECK(family.end("stop sshd's child") == contract::kLostHost);
    CHECK_THAT(family.err(), Contains("node2: nothing has been heard"));
    family.job().before().with_all_sshd();
    family.send(sshd, SIGCONT);
    family.job().before().require_nothing_left();
  }
}

TEST_CASE("if ddlrun is stopped by SIGSTOP, the agents end their ranks", "[lifeline]") {
  Family family("stubborn");
  const pid_t head = family.job().job().pid();
  family.send(head, SIGSTOP);
  const auto began = Clock::now();
  // Only sshd is left on the hosts, because its peer still runs; then ddlrun is continued.
  const auto left = family.job().before().wait_until_none_left(
      [](const HostProcess& process) { return process.host != "head" && !process.is_sshd(); },
      Deadline::after(e2e::kTestTimeout));
  REQUIRE(describe(left) == "");
  std::printf("stop ddlrun: nothing was left on the hosts after %.2f s\n",
              std::chrono::duration<double>(Clock::now() - began).count());
  family.send(head, SIGCONT);
  CHECK(family.end("continue ddlrun") == contract::kLostHost);
}

TEST_CASE("a host that dies silently is detected, and the ranks of all other hosts end", "[lifeline]") {
  Cluster cluster;
  Family family("stubborn");
  family.begin_now();
  cluster.kill("node2");
  CHECK(family.end("a host's death") == contract::kLostHost);
  CHECK_THAT(family.err(), Contains("node2: nothing has been heard from its agent"));
  CHECK_THAT(family.err(), Contains("the host is down or cut off"));
}

TEST_CASE("the page of a job says which host was lost", "[lifeline]") {
  const SharedScratch folder;
  REQUIRE(::chmod(folder.path().c_str(), 0777) == 0);  // the login's head writes the file
  Cluster cluster;
  HostJob job({"-H", "node1:1,node2:1", "--report", folder.path("r.html"), "--report-json",
               folder.path("r.json"), "sh", "-c", "echo ready; exec sleep 1000"});
  job.job().wait_for("ready", 2);
  cluster.kill("node2");
  CHECK(job.wait() == contract::kLostHost);
  CHECK_THAT(e2e::bytes_of(folder.path("r.html")),
             Contains("<b>node2: nothing has been heard from its agent") && Contains("</html>"));
  CHECK_THAT(e2e::bytes_of(folder.path("r.json")),
             Contains("\"reason\":\"host_lost\"") &&
                 Contains("\"exit_code\":" + std::to_string(contract::kLostHost)));
}

TEST_CASE("a host in a partition ends its ranks, and the ranks of the others end, too", "[lifeline]") {
  Cluster cluster;
  Family family("stubborn");
  family.job().before().without_sshd_on("node2");  // sshd cannot detect the partition
  family.begin_now();
  cluster.partition("node2");
  CHECK(family.end("a partition") == contract::kLostHost);
  CHECK_THAT(family.err(), Contains("node2: nothing has been heard from its agent"));
  cluster.heal("node2");
  family.job().before().with_all_sshd();
  family.job().before().require_nothing_left();
}

/// A job of libddl on four hosts, two ranks on each, whose ranks save their state after SIGTERM; all of them are in
/// collectives.
class SavingJob {
 public:
  SavingJob() { job_.job().wait_for("ready", 8); }

  HostJob& job() { return job_; }
  void kill_on_node4(const std::string& name) {
    const auto found = job_.processes(name, "node4");
    REQUIRE(found.size() == 1);
    const auto pidfd = open_pidfd(found.front().pid);
    REQUIRE(pidfd);
    REQUIRE(send_signal(pidfd->get(), SIGKILL));
  }
  /// Waits for its end: every rank of the other hosts was told which one is lost, and has saved its state.
  void require_all_saved() {
    const int code = job_.wait();
    INFO("standard output:\n" << job_.out() << "standard error:\n" << job_.err());
    CHECK(code == contract::kLostHost);
    for (const std::string rank : {"0", "1", "2", "3", "4", "5"}) {
      const std::string told = "rank " + rank + " was told: peer lost: rank ";
      const std::size_t line = job_.out().find(told);
      REQUIRE(line != std::string::npos);
      CHECK_THAT(job_.out().substr(line, job_.out().find('\n', line) - line), Contains(" on node4 (pid "));
      CHECK_THAT(job_.out(), Contains("rank " + rank + " saved\n"));
    }
    CHECK_THAT(job_.err(), Contains("ddlrun: node4: ") && Contains("ranks 0-5 exited with 0"));
  }

 private:
  HostJob job_{{"-np", "8", "-H", "node1:2,node2:2,node3:2,node4:2", e2e::program("ddl_program"), "save"}};
};

void lose_one_after_the_other(int rounds) {
  for (int round = 0; round < rounds; ++round) {
    CAPTURE(round);
    for (const std::string killed : {"ddl-agent", "ddl-spawner"}) {
      CAPTURE(killed);
      SavingJob job;
      job.kill_on_node4(killed);
      job.require_all_saved();
    }
    Cluster cluster;
    SavingJob job;
    job.job().before().without_sshd_on("node4");
    cluster.partition("node4");
    job.require_all_saved();
    cluster.heal("node4");
    job.job().before().with_all_sshd();
    job.job().before().require_nothing_left();
  }
}

TEST_CASE("ranks are told which host, agent or spawner was lost, and may save their state", "[lifeline]") {
  lose_one_after_the_other(1);
}

TEST_CASE("ranks are told which host, agent or spawner was lost, twenty times each", "[many_losses]") {
  lose_one_after_the_other(20);
}

TEST_CASE("a short partition does not affect a job", "[lifeline]") {
  Cluster cluster;
  HostJob job({"-np", "2", "--stdin", "all", "-H", "node1:1,node2:1", "sh", "-c",
               "echo ready; read line; echo $line"},
              [] {
                e2e::Command settings;
                settings.input = e2e::Command::Input::kPipe;
                return settings;
              }());
  job.job().wait_for("ready", 2);
  cluster.partition("node1");
  CHECK(job.job().is_silent_for(milliseconds(1000)));
  cluster.heal("node1");
  job.job().write("on we go\n");
  job.job().wait_for("on we go", 2);
  job.job().close_input();
  CHECK(job.wait() == 0);
}

}  // namespace
}  // namespace ddl::cluster
