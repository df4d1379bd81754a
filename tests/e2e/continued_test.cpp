// Jobs whose ranks go on when others fail: on this machine, whose two names count as two hosts.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <set>
#include <thread>

#include <nlohmann/json.hpp>

#include "base/fd.h"
#include "base/process.h"
#include "base/text.h"
#include "contract/ddlrun.h"
#include "e2e/harness/fifo.h"
#include "e2e/harness/job.h"
#include "support/catch.h"

namespace ddl::e2e {
namespace {

using Catch::Matchers::Contains;
using Words = std::vector<std::string>;
namespace contract = ddl::contract;

const Words kTwoNames = {"-H", "localhost:2,127.0.0.1:2"};
// So that no process is started in the place of one that has failed.
const Words kNoOthers = {"--blacklist-cooldown-range", "3600", "3600"};
const Words kOthersAtOnce = {"--blacklist-cooldown-range", "1", "1", "--elastic-settle", "0"};

/// A job of tests/e2e/programs/elastic_program.c.
class ElasticJob {
 public:
  explicit ElasticJob(const Words& words, const std::string& mode = "")
      : job_(scratch_, ddlrun(words + Words{program("elastic_program"), mode})) {}
  /// Of another program.
  explicit ElasticJob(const Command& command) : job_(scratch_, command) {}

  Job& job() { return job_; }
  const Scratch& scratch() const { return scratch_; }

  /// Waits until all ranks of a generation have said who they are. Their pids, by rank.
  std::map<int, int> pids(int generation, int size) {
    const std::string begin = "generation " + std::to_string(generation) + ": rank ";
    const std::string all = " of " + std::to_string(size) + ", local ";
    std::map<int, int> found;
    job_.wait_until("all ranks of generation " + std::to_string(generation), [&] {
      found.clear();
      for (const std::string_view line : split(job_.out(), '\n')) {
        const auto at = line.find(begin), size_at = line.find(all), pid_at = line.find("pid ");
        if (at == std::string_view::npos || size_at == std::string_view::npos) continue;
        found[std::stoi(std::string(line.substr(at + begin.size())))] =
            std::stoi(std::string(line.substr(pid_at + 4)));
      }
      return std::ssize(found) == size;
    });
    return found;
  }

  int stop() {
    scratch_.write("stop", "");
    return job_.wait_and_require_nothing_left();
  }

 private:
  Scratch scratch_;
  Job job_;
};

bool is_running(int pid) {
  const auto process = read_process_stat(pid);
  return process && process->is_alive();
}

/// What elastic_fit prints at its end.
std::string loss_of_fit(const std::string& out) {
  const auto at = out.find("after 60000 steps the loss is ");
  REQUIRE(at != std::string::npos);
  return out.substr(at, out.find('\n', at) - at);
}

std::string fit_program() {
  return std::filesystem::path(ddlrun({}).argv.front()).parent_path() / "elastic_fit";
}

/// Of ranks that nothing happens to.
const std::string& undisturbed_loss() {
  static const std::string loss = [] {
    const Scratch scratch;
    Job job(scratch, ddlrun({"-np", "2", "--oversubscribe", fit_program(), "60000"}));
    REQUIRE(job.wait_and_require_nothing_left() == 0);
    return loss_of_fit(job.out());
  }();
  return loss;
}

std::set<int> pid_set(const std::map<int, int>& pids) {
  std::set<int> set;
  for (const auto& [rank, pid] : pids) set.insert(pid);
  return set;
}

TEST_CASE("when a rank is killed, the others go on as the same processes", "[continued]") {
  for (const int killed : {3, 0}) {
    CAPTURE(killed);
    ElasticJob job(kTwoNames + kNoOthers + Words{"--min-np", "2"});
    const auto first = job.pids(0, 4);
    ::kill(first.at(killed), SIGKILL);
    const auto second = job.pids(1, 3);
    std::set<int> expected = pid_set(first);
    expected.erase(first.at(killed));
    CHECK(pid_set(second) == expected);
    CHECK(job.stop() == 0);
    CHECK_THAT(job.job().err(), Contains("rank " + std::to_string(killed) + " on ") &&
                                    Contains(" was killed by SIGKILL") &&
                                    Contains("generation 1: going on with 3 ranks on "));
    CHECK_THAT(job.job().out(), Contains("lost: peer lost: rank " + std::to_string(killed) + " on "));
  }
}

TEST_CASE("two ranks that end at once, and one more during the recovery, are survived", "[continued]") {
  ElasticJob job(Words{"-H", "localhost:3,127.0.0.1:3", "--min-np", "2"} + kNoOthers);
  const auto first = job.pids(0, 6);
  ::kill(first.at(1), SIGKILL);
  ::kill(first.at(5), SIGKILL);
  ::kill(first.at(2), SIGKILL);
  job.job().wait_until("a generation of three",
                       [&] { return job.job().out().find(" rank 2 of 3, ") != std::string::npos; });
  CHECK(job.stop() == 0);
}

TEST_CASE("one rank of many goes on alone", "[continued]") {
  ElasticJob job(kTwoNames + kNoOthers + Words{"--min-np", "1"});
  const auto first = job.pids(0, 4);
  for (const int rank : {0, 1, 2}) ::kill(first.at(rank), SIGKILL);
  job.job().wait_for(": rank 0 of 1, local 0 of 1, pid " + std::to_string(first.at(3)));
  CHECK(job.stop() == 0);
}

TEST_CASE("a process is started in the place of one that has failed, and joins at the same step",
          "[continued]") {
  ElasticJob job(kTwoNames + kOthersAtOnce + Words{"--min-np", "2"});
  const auto first = job.pids(0, 4);
  ::kill(first.at(1), SIGKILL);
  const auto third = job.pids(2, 4);
  // It has the old rank, and the others have theirs.
  for (const int rank : {0, 2, 3}) CHECK(third.at(rank) == first.at(rank));
  CHECK(third.at(1) != first.at(1));
  CHECK_THAT(job.job().out(), Contains("[1]<stdout>:generation 2: rank 1 of 4, local 1 of 2, pid " +
                                       std::to_string(third.at(1)) + ", at step 1"));
  CHECK(job.stop() == 0);
}

TEST_CASE("what a killed rank had started is ended, although the job goes on", "[continued]") {
  const Scratch scratch;
  Job job(scratch, ddlrun(Words{"-H", "localhost:2", "--min-np", "1"} + kNoOthers +
                          Words{"sh", "-c",
                                "sleep 1000 & echo \"of slot $LOCAL_RANK: $!.\"; exec " +
                                    program("elastic_program")}));
  job.wait_for("generation 0: rank ", 2);
  const auto number_after = [&](const std::string& text) {
    return std::stoi(job.out().substr(job.out().find(text) + text.size()));
  };
  const int child = number_after("of slot 1: "), other = number_after("of slot 0: ");
  ::kill(number_after("rank 1 of 2, local 1 of 2, pid "), SIGKILL);
  job.wait_for(": rank 0 of 1, ");
  job.wait_until("the child of the killed rank has ended", [&] { return !is_running(child); });
  CHECK(is_running(other));
  scratch.write("stop", "");
  CHECK(job.wait_and_require_nothing_left() == 0);
}

TEST_CASE("when an agent, a spawner or a head is killed, the ranks of other hosts go on", "[continued]") {
  for (const int above_rank : {1, 2, 3}) {
    CAPTURE(above_rank);
    ElasticJob job(kTwoNames + kNoOthers + Words{"--min-np", "2", "--json"});
    const auto first = job.pids(0, 4);
    int killed = first.at(3);
    for (int i = 0; i < above_rank; ++i) killed = read_process_stat(killed)->parent;
    ::kill(killed, SIGKILL);
    const auto second = job.pids(1, 2);
    CHECK(second.at(0) == first.at(0));
    CHECK(second.at(1) == first.at(1));
    CHECK(job.stop() == 0);
    CHECK_THAT(job.job().err(), Contains("127.0.0.1: the "));
    const std::string err = job.job().err().substr(0, job.job().err().size() - 1);
    const auto report = nlohmann::json::parse(err.substr(err.rfind('\n') + 1));
    CHECK(report["reason"] == "success");
    REQUIRE(report["generations"].size() == 2);
    CHECK(report["generations"][1]["hosts"] == nlohmann::json{"localhost"});
  }
}

TEST_CASE("with too few ranks the job ends with the failure that took the last one too many", "[continued]") {
  ElasticJob job(kTwoNames + kNoOthers + Words{"--min-np", "4"});
  const auto first = job.pids(0, 4);
  ::kill(first.at(2), SIGKILL);
  CHECK(job.job().wait_and_require_nothing_left() == 128 + SIGKILL);
  CHECK_THAT(
      job.job().err(),
      Contains("the job ends: 3 ranks of at least 4 can run, and no others can come") &&
          Contains("rank 2 on 127.0.0.1 (pid " + std::to_string(first.at(2)) + ") was killed by SIGKILL"));
}

TEST_CASE("when the head of a launch is stopped, its host is lost", "[continued]") {
  ElasticJob job(kTwoNames + kNoOthers + Words{"--min-np", "1"});
  const auto first = job.pids(0, 4);
  const int agent = read_process_stat(read_process_stat(first.at(3))->parent)->parent;
  ::kill(read_process_stat(agent)->parent, SIGSTOP);
  const auto second = job.pids(1, 2);
  CHECK(second.at(0) == first.at(0));
  CHECK_THAT(job.job().err(),
             Contains("127.0.0.1: the process of ddlrun that had started its ranks was stopped"));
  CHECK(job.stop() == 0);
}

TEST_CASE("a job without a rank that has the state ends", "[continued]") {
  ElasticJob job(kTwoNames + kOthersAtOnce + Words{"--min-np", "1"});
  for (const auto& [rank, pid] : job.pids(0, 4))
    ::kill(pid, SIGSTOP);  // nobody joins again before all are killed
  const auto pids = job.pids(0, 4);
  for (const auto& [rank, pid] : pids) ::kill(pid, SIGKILL);
  CHECK(job.job().wait_and_require_nothing_left() == 128 + SIGKILL);
  CHECK_THAT(job.job().err(), Contains("all ranks have ended, and none has joined again"));
}

TEST_CASE("a rank that hangs is killed, and the others go on", "[continued]") {
  ElasticJob job(kTwoNames + kNoOthers + Words{"--min-np", "2", "--elastic-ready-timeout", "1"});
  const auto first = job.pids(0, 4);
  ::kill(first.at(2), SIGSTOP);
  ::kill(first.at(0), SIGKILL);
  const auto second = job.pids(1, 2);
  CHECK(pid_set(second) == std::set<int>{first.at(1), first.at(3)});
  CHECK(job.stop() == 0);
  CHECK_THAT(job.job().err(), Contains("rank 2 on 127.0.0.1 (pid " + std::to_string(first.at(2)) +
                                       ") has not joined again within 1 s, and is killed"));
}

TEST_CASE("a program that does not join again ends as in an ordinary job", "[continued]") {
  ElasticJob job(kTwoNames + Words{"--min-np", "2"}, "once");
  const auto first = job.pids(0, 4);
  ::kill(first.at(1), SIGTERM);
  CHECK(job.job().wait_and_require_nothing_left() == 128 + SIGTERM);
  CHECK_THAT(job.job().err(),
             Contains("all ranks have ended, and none has joined again; a program that goes on calls") &&
                 Contains("rank 1 on localhost") && Contains("was killed by SIGTERM"));
}

TEST_CASE("a rank that exits with 0 before its work is done has left", "[continued]") {
  ElasticJob job(kTwoNames + kNoOthers + Words{"--min-np", "1"}, "early");
  job.job().wait_for(": rank 0 of 1, ");
  CHECK(job.stop() == 0);
}

TEST_CASE("ddl_abort() ends an elastic job", "[continued]") {
  ElasticJob job(kTwoNames + kNoOthers + Words{"--min-np", "2"}, "abort");
  ::kill(job.pids(0, 4).at(3), SIGKILL);
  CHECK(job.job().wait_and_require_nothing_left() == 5);
  CHECK_THAT(job.job().err(), Contains("no data"));
}

TEST_CASE("hosts that a discovery script adds and removes join and leave at a step", "[continued]") {
  const Scratch scratch;
  const std::string hosts = scratch.write("hosts", "localhost:1\n");
  const std::string script = scratch.write("discover", "#!/bin/sh\ncat " + hosts + "\n", true);
  const auto set_hosts = [&](const std::string& text) {
    std::ofstream(hosts + ".new") << text;
    std::filesystem::rename(hosts + ".new", hosts);
  };
  ElasticJob job(Words{"-np", "1", "--host-discovery-script", script, "--elastic-settle", "20"});
  const auto first = job.pids(0, 1);
  set_hosts("localhost:1\n127.0.0.1:1\n");
  const auto second = job.pids(1, 2);
  CHECK(second.at(0) == first.at(0));
  set_hosts("127.0.0.1:1\n");
  const auto third = job.pids(2, 1);
  CHECK(third.at(0) == second.at(1));
  // A host may get more slots, and fewer.
  set_hosts("127.0.0.1:3\n");
  CHECK(job.pids(3, 3).at(0) == third.at(0));
  set_hosts("127.0.0.1:2\n");
  CHECK(job.pids(4, 2).at(0) == third.at(0));
  CHECK(job.stop() == 0);
  CHECK(job.job().out().find("lost:") == std::string::npos);
}

TEST_CASE("a fit through kills has the result of one without them", "[continued]") {
  const Words words = Words{"-H", "localhost:2,127.0.0.1:2", "--oversubscribe"};
  const Scratch scratch;
  Job elastic(scratch, ddlrun(words + kNoOthers + Words{"--min-np", "1", fit_program(), "60000"}));
  elastic.wait_for("generation 0: rank ", 4);
  for (const std::string name : {"[3]", "[1]"}) {
    const auto line = elastic.out().find(name + "<stdout>:generation 0: ");
    ::kill(std::stoi(elastic.out().substr(elastic.out().find("process ", line) + 8)), SIGKILL);
    elastic.wait_for(name == "[3]" ? " of 3 (process " : " of 2 (process ", name == "[3]" ? 3 : 2);
  }
  CHECK(elastic.wait_and_require_nothing_left() == 0);
  CHECK(loss_of_fit(elastic.out()) == undisturbed_loss());
}

TEST_CASE("an elastic job ends by ^C and by the death of ddlrun, and nothing is left", "[continued]") {
  ElasticJob interrupted(kTwoNames + Words{"--min-np", "2"});
  interrupted.pids(0, 4);
  interrupted.job().send(SIGINT);
  CHECK(interrupted.job().wait_and_require_nothing_left() == 128 + SIGINT);
  ElasticJob killed(kTwoNames + Words{"--min-np", "2"});
  killed.pids(0, 4);
  killed.job().send(SIGKILL);
  CHECK(killed.job().wait_and_require_nothing_left() == 128 + SIGKILL);
}

TEST_CASE("ranks whose agent is asked to end leave at a step, and the others go on", "[continued]") {
  ElasticJob job(kTwoNames + kOthersAtOnce + Words{"--min-np", "1"});
  const auto first = job.pids(0, 4);
  const auto agent_of = [](int rank) { return read_process_stat(read_process_stat(rank)->parent)->parent; };
  ::kill(agent_of(first.at(3)), SIGTERM);
  const auto second = job.pids(1, 2);
  CHECK(second.at(0) == first.at(0));
  CHECK(second.at(1) == first.at(1));
  CHECK_THAT(job.job().err(), Contains("127.0.0.1: its agent received SIGTERM") &&
                                  Contains("its ranks leave at the next commit"));
  CHECK(job.job().out().find("lost:") == std::string::npos);
  // With the last agent the whole job is asked to end.
  ::kill(agent_of(first.at(0)), SIGTERM);
  CHECK(job.job().wait_and_require_nothing_left() == 128 + SIGTERM);
}

TEST_CASE("a host that is about to be taken away leaves at a step; one whose watch fails stays",
          "[continued]") {
  const Scratch scratch;
  const std::string fifo = scratch.path("fifo");
  REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
  // Each of the two commands reads a byte.
  ElasticJob job(kTwoNames + kNoOthers +
                 Words{"--min-np", "1", "--preemption-watch",
                       "[ \"$(dd bs=1 count=1 status=none <'" + fifo + "')\" = g ]"});
  const auto first = job.pids(0, 4);
  const UniqueFd writer(::open(fifo.c_str(), O_WRONLY));
  REQUIRE(::write(writer.get(), "gs", 2) == 2);
  job.pids(1, 2);
  job.job().wait_until("the other one has failed", [&] {
    return job.job().err().find("the command of --preemption-watch exits with 1") != std::string::npos;
  });
  CHECK_THAT(job.job().err(),
             Contains("--preemption-watch: it will be taken away; its ranks leave at the next commit"));
  CHECK(job.job().out().find("lost:") == std::string::npos);
  CHECK(job.stop() == 0);
}

TEST_CASE("two hundred generations leave no descriptor and no memory behind", "[continued]") {
  ElasticJob job(kTwoNames + Words{"--min-np", "4"}, "resets");
  CHECK(job.job().wait_and_require_nothing_left() == 0);
  for (int rank = 0; rank < 4; ++rank) {
    CAPTURE(rank);
    const std::string begin = "usage of rank " + std::to_string(rank) + ": ";
    std::vector<std::pair<long, long>> usages;  // in kilobytes, and descriptors
    for (const std::string_view line : split(job.job().out(), '\n')) {
      const auto at = line.find(begin);
      if (at == std::string_view::npos) continue;
      const std::string numbers(line.substr(at + begin.size()));
      usages.emplace_back(std::stol(numbers), std::stol(numbers.substr(numbers.find(", ") + 2)));
    }
    REQUIRE(usages.size() == 2);
    CHECK(usages[1].second == usages[0].second);
    // A sanitizer keeps what has been freed.
    if (std::string_view(DDL_E2E_SANITIZE) == "") CHECK(usages[1].first < usages[0].first + 500);
  }
}

TEST_CASE("with --elastic-unit host the other ranks of a host leave with one that fails", "[continued]") {
  ElasticJob job(kTwoNames + kNoOthers + Words{"--min-np", "1", "--elastic-unit", "host"});
  const auto first = job.pids(0, 4);
  ::kill(first.at(1), SIGKILL);
  const auto second = job.pids(1, 2);
  CHECK(second.at(0) == first.at(2));
  CHECK(second.at(1) == first.at(3));
  CHECK(job.stop() == 0);
}

TEST_CASE("what the ranks of a job that goes on wait for is told and shown, and killed if that is wanted",
          "[continued]") {
  ElasticJob job(kTwoNames + kNoOthers + Words{"--min-np", "1", "--stall-check-warning-time-seconds", "0.3"},
                 "hang1");
  ::kill(job.pids(0, 4).at(0), SIGKILL);
  const auto pids = job.pids(1, 3);
  job.job().wait_until("the wait is told",
                       [&] { return job.job().err().find("2 of 3 ranks have waited") != std::string::npos; });
  const std::string pid = std::to_string(job.job().pid());
  Job inspection(job.scratch(), ddlrun({"--inspect", pid, "--json"}));
  CHECK(inspection.wait() == 0);
  const auto shown = nlohmann::json::parse(inspection.out());
  CHECK(shown["job"]["head_pid"] == job.job().pid());
  CHECK(shown["job"]["generation"] == 1);
  REQUIRE(shown["ranks"].size() == 3);
  for (const int rank : {0, 1, 2})
    CHECK(shown["ranks"][static_cast<std::size_t>(rank)]["pid"] == pids.at(rank));
  CHECK(shown["waits"][0]["missing"] == nlohmann::json{1});
  job.job().send(SIGINT);
  CHECK(job.job().wait_and_require_nothing_left() == 128 + SIGINT);

  ElasticJob limited(
      kTwoNames + kNoOthers + Words{"--stall-check-shutdown-time-seconds", "0.3", "--min-np", "1"}, "hang0");
  const auto first = limited.pids(0, 4);
  const auto second = limited.pids(1, 3);
  CHECK(second.at(1) == first.at(2));
  CHECK_THAT(limited.job().err(), Contains("3 of 4 ranks have waited") && Contains("it is killed"));
  CHECK(limited.stop() == 0);
}

TEST_CASE("SIGTERM to ddlrun and to all agents, in any order, is one request to end", "[continued]") {
  for (const bool is_head_first : {true, false}) {
    CAPTURE(is_head_first);
    const Scratch scratch;
    ElasticJob job(kTwoNames + Words{"--min-np", "1", "--state-dir", scratch.path("state")}, "slow");
    const auto first = job.pids(0, 4);
    if (is_head_first) job.job().send(SIGTERM);
    for (const int rank : {0, 3})
      ::kill(read_process_stat(read_process_stat(first.at(rank))->parent)->parent, SIGTERM);
    job.job().wait_until("the request is seen", [&] {
      return job.job().err().find("SIGTERM has asked the job to end") != std::string::npos;
    });
    if (!is_head_first) job.job().send(SIGTERM);
    CHECK(job.job().wait_and_require_nothing_left() == contract::kDrained);
    CHECK(occurrences(job.job().out(), "drained at step 1\n") == 4);
  }
}

TEST_CASE("a job that is asked to end saves its state at the next commit", "[continued]") {
  const Scratch scratch;
  const Words state = {"--state-dir", scratch.path("state")};
  for (const int signal : {SIGUSR1, SIGTERM}) {
    CAPTURE(signal);
    ElasticJob job(Words{"-H", "localhost:3,127.0.0.1:3", "-np", "4", "--max-np", "4", "--spares", "1",
                         "--min-np", "2", "--json"} +
                   kNoOthers + state);
    ::kill(job.pids(0, 4).at(1), SIGKILL);
    job.pids(1, 4);
    job.job().send(signal);
    CHECK(job.job().wait_and_require_nothing_left() == contract::kDrained);
    CHECK(occurrences(job.job().out(), "drained at step 1\n") == 4);
    const std::string err = job.job().err().substr(0, job.job().err().size() - 1);
    const auto report = nlohmann::json::parse(err.substr(err.rfind('\n') + 1));
    CHECK(report["reason"] == "drained");
    CHECK(report["exit_code"] == contract::kDrained);
  }
}

TEST_CASE("a job that is asked to end before its ranks have joined has nothing to save", "[continued]") {
  const Scratch scratch;
  Job job(scratch, ddlrun(kTwoNames + Words{"--min-np", "1", "--state-dir", scratch.path("state"), "sh", "-c",
                                            "echo started; exec sleep 100"}));
  job.wait_for("started", 4);
  job.send(SIGUSR1);
  CHECK(job.wait_and_require_nothing_left() == contract::kDrained);
}

TEST_CASE("a job whose state could not be saved fails, and so does one that does not commit", "[continued]") {
  const Scratch scratch;
  const Words state = {"--state-dir", scratch.path("state")};
  ElasticJob bad(kTwoNames + kNoOthers + Words{"--min-np", "2"} + state, "save_badly");
  bad.pids(0, 4);
  bad.job().send(SIGUSR1);
  CHECK(bad.job().wait_and_require_nothing_left() == 9);
  // A second SIGTERM ends it at once.
  ElasticJob late(kTwoNames + Words{"--min-np", "2"} + state, "never");
  late.pids(0, 4);
  late.job().send(SIGTERM);
  late.job().wait_until("the first signal has been seen", [&] {
    return late.job().err().find("SIGTERM has asked the job to end") != std::string::npos;
  });
  late.job().send(SIGTERM);
  CHECK(late.job().wait_and_require_nothing_left() == 128 + SIGTERM);
}

TEST_CASE("a fit that was asked to end goes on in the next job, with the result of one without that",
          "[continued]") {
  const Scratch scratch;
  const auto words = [&](const std::string& ranks) {
    return Words{"-np",  ranks,         "--oversubscribe",     "--min-np",
                 "1",    "--state-dir", scratch.path("state"), fit_program(),
                 "60000"};
  };
  Job first(scratch, ddlrun(words("3")));
  first.wait_for("generation 0: rank ", 3);
  first.send(SIGUSR1);
  REQUIRE(first.wait_and_require_nothing_left() == contract::kDrained);
  CHECK(std::filesystem::exists(scratch.path("state") + "/ddl-state.bin"));
  Job second(scratch, ddlrun(words("2")));
  CHECK(second.wait_and_require_nothing_left() == 0);
  CHECK(second.out().find("from step 0\n") == std::string::npos);
  CHECK(loss_of_fit(second.out()) == undisturbed_loss());
  CHECK(std::filesystem::is_empty(scratch.path("state")));
}

TEST_CASE("a job whose folder for the state cannot be used ends at its start", "[continued]") {
  const Scratch scratch;
  const std::string no_folder = scratch.write("no_folder", "");
  std::filesystem::create_directory(scratch.path("state"));
  scratch.write("state/ddl-state.bin", "rubbish");
  for (const auto& [folder, why] :
       {std::pair(no_folder, no_folder + " is not a folder that can be written"),
        std::pair(scratch.path("state"), std::string("ddl-state.bin is not the state of this program"))}) {
    CAPTURE(folder);
    Job job(scratch,
            ddlrun(kTwoNames + Words{"--min-np", "1", "--state-dir", folder, fit_program(), "2000"}));
    CHECK(job.wait_and_require_nothing_left() == 1);
    CHECK_THAT(job.err(), Contains(why) && !Contains("generation 1") && !Contains("joined again"));
  }
}

/// A job of tests/e2e/programs/elastic_gloo_client.py on two names.
Command gloo_job(const Words& words) {
  return ddlrun(kTwoNames + words +
                Words{"--gloo", "/usr/bin/python3", DDL_E2E_SOURCES "/programs/elastic_gloo_client.py"});
}

TEST_CASE(
    "ranks that join again by the rendezvous for Gloo go on, and nobody takes the place of one that is lost",
    "[continued]") {
  for (const int killed : {3, 0}) {
    CAPTURE(killed);
    ElasticJob job(gloo_job({"--min-np", "2", "--blacklist-cooldown-range", "1", "1"}));
    const auto first = job.pids(0, 4);
    ::kill(first.at(killed), SIGKILL);
    job.job().wait_for(" was killed by SIGKILL");
    job.scratch().write("lost0", "");
    const auto second = job.pids(1, 3);
    std::set<int> expected = pid_set(first);
    expected.erase(first.at(killed));
    CHECK(pid_set(second) == expected);
    std::this_thread::sleep_for(std::chrono::milliseconds(1200));
    CHECK(job.stop() == 0);
    CHECK_THAT(job.job().err(), Contains("rank " + std::to_string(killed) + " on ") &&
                                    Contains("generation 1: going on with 3 ranks on ") &&
                                    !Contains("generation 2"));
    // Local ranks have no holes.
    CHECK_THAT(job.job().out(),
               Contains(", local 0 of 1, cross ") && Contains(", local 1 of 2, cross 0 of 1, "));
  }
}

TEST_CASE("a rank that is lost before the ranks have met by the rendezvous for Gloo ends the job",
          "[continued]") {
  const Scratch scratch;
  scratch.write("hold", "");
  Job job(scratch, gloo_job({"--min-np", "1"}));
  job.wait_for("held: rank ", 4);
  const std::string line = job.out().substr(job.out().find("held: rank 2, pid "));
  ::kill(std::stoi(line.substr(18)), SIGKILL);
  CHECK(job.wait_and_require_nothing_left() == contract::kSignalBase + SIGKILL);
  CHECK_THAT(job.err(), Contains("rank 2 on 127.0.0.1 (pid ") &&
                            Contains("a rank has ended while the ranks connected with each other"));
}

TEST_CASE("a rank that joins by libddl is told that --gloo is not for it", "[continued]") {
  ElasticJob job(kTwoNames + Words{"--min-np", "2", "--gloo"});
  CHECK(job.job().wait_and_require_nothing_left() == contract::kStartFailure);
  CHECK_THAT(job.job().err(),
             Contains("a rank joins by libddl, and --gloo is for programs of Horovod; omit --gloo"));
}

TEST_CASE("programs without libddl run in an elastic job, too", "[continued]") {
  const Scratch scratch;
  Job good(scratch, ddlrun(kTwoNames + Words{"--min-np", "2", "sh", "-c", "echo $LOCAL_RANK"}));
  CHECK(good.wait_and_require_nothing_left() == 0);
  for (const char* const line : {"[0]<stdout>:0\n", "[1]<stdout>:1\n", "[2]<stdout>:0\n", "[3]<stdout>:1\n"})
    CHECK_THAT(good.out(), Contains(line));
  Job bad(scratch, ddlrun(kTwoNames + Words{"--min-np", "2", "sh", "-c", "exit 7"}));
  CHECK(bad.wait_and_require_nothing_left() == 7);
  Job missing(scratch, ddlrun(kTwoNames + Words{"--min-np", "2", "no-such-program"}));
  CHECK(missing.wait_and_require_nothing_left() == contract::kNotFound);
}

}  // namespace
}  // namespace ddl::e2e
