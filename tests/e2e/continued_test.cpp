// Jobs whose ranks go on when others fail: on this machine, whose two names count as two hosts.
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include <nlohmann/json.hpp>

#include "base/process.h"
#include "base/text.h"
#include "contract/ddlrun.h"
#include "e2e/harness/elastic_job.h"
#include "e2e/harness/fifo.h"
#include "e2e/harness/processes.h"
#include "support/catch.h"

namespace ddl::e2e {
namespace {

using Catch::Matchers::Contains;
using Words = std::vector<std::string>;
namespace contract = ddl::contract;

bool is_running(int pid) {
  const auto process = read_process_stat(pid);
  return process && process->is_alive();
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
  // Nobody goes on before both have been killed.
  for (const int rank : {0, 2, 3, 4}) ::kill(first.at(rank), SIGSTOP);
  for (const int rank : {1, 5}) ::kill(first.at(rank), SIGKILL);
  for (const int rank : {0, 2, 3, 4}) ::kill(first.at(rank), SIGCONT);
  const auto second = job.pids(1, 4);
  CHECK(pid_set(second) == std::set<int>{first.at(0), first.at(2), first.at(3), first.at(4)});
  ::kill(second.at(1), SIGKILL);
  job.job().wait_until("the next generation begins",
                       [&] { return job.job().err().find("generation 2: going on") != std::string::npos; });
  ::kill(second.at(3), SIGKILL);
  CHECK(pid_set(job.pids(3, 2)) == std::set<int>{first.at(0), first.at(3)});
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
  for (const int killed : {1, 0}) {
    CAPTURE(killed);
    // The second job does not go on without that process.
    const bool waits = killed == 0;
    ElasticJob job(kTwoNames + kOthersAtOnce + Words{"--min-np", waits ? "4" : "2"});
    const auto first = job.pids(0, 4);
    job.job().wait_for("the first step is made", 4);
    ::kill(first.at(killed), SIGKILL);
    const auto last = job.pids(waits ? 1 : 2, 4);
    // It has the old rank, and the others have theirs.
    for (int rank = 0; rank < 4; ++rank) CHECK((last.at(rank) == first.at(rank)) == (rank != killed));
    const std::string number = std::to_string(killed);
    CHECK_THAT(job.job().out(), Contains("[" + number + "]<stdout>:generation " + (waits ? "1" : "2") +
                                         ": rank " + number + " of 4, local " + number + " of 2, pid " +
                                         std::to_string(last.at(killed)) + ", at step 1"));
    CHECK(job.stop() == 0);
  }
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
  CHECK(wait_for_end_of(child, Deadline::after(kTestTimeout)));
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
    for (const int rank : {2, 3}) CHECK(wait_for_end_of(first.at(rank), Deadline::after(kTestTimeout)));
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
                                       ") has not joined again within 1 s, and is killed: it is stopped "
                                       "(SIGSTOP)\n"));
}

TEST_CASE("of a rank in an endless loop it is said that it computes, and where, before it is killed",
          "[continued]") {
  ElasticJob job(kTwoNames + kNoOthers + Words{"--min-np", "2", "--elastic-ready-timeout", "1"}, "spin0");
  const auto first = job.pids(0, 4);
  ::kill(first.at(0), SIGKILL);
  const auto second = job.pids(1, 2);
  CHECK(pid_set(second) == std::set<int>{first.at(2), first.at(3)});
  CHECK(job.stop() == 0);
  const std::string killed =
      "rank 1 on localhost (pid " + std::to_string(first.at(1)) +
      ") has not joined again within 1 s, and is killed: it has been in user code for ";
  CHECK_THAT(job.job().err(), Contains(killed));
  // It has no other threads, and may not get much of a CPU here.
  const std::string& err = job.job().err();
  const std::string how = err.substr(err.find(killed) + killed.size());
  CHECK_THAT(how, Contains(" % of a CPU\n") || Contains(", and runs\n"));
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

TEST_CASE("a rank that exits before its work is done has left, also with 0", "[continued]") {
  for (const std::string mode : {"early", "exits7"}) {
    CAPTURE(mode);
    ElasticJob job(kTwoNames + kNoOthers + Words{"--min-np", "1"}, mode);
    const auto first = job.pids(0, 4);
    job.job().wait_for(": rank 0 of 1, local 0 of 1, pid " + std::to_string(first.at(0)));
    CHECK(job.stop() == 0);
    CHECK_THAT(job.job().err(), Contains("rank 1 on localhost (pid " + std::to_string(first.at(1)) +
                                         ") exited with " + (mode == "early" ? "0" : "7")));
  }
}

TEST_CASE("a job ends that does not advance, or changes more often than it may", "[continued]") {
  for (const auto& [mode, options, why] :
       {std::tuple("fails", Words{}, "ranks have failed 3 times without a commit between them"),
        std::tuple("exits7", Words{"--reset-limit", "1"},
                   "there were as many new generations as --reset-limit 1 allows")}) {
    CAPTURE(mode);
    ElasticJob job(kTwoNames + kNoOthers + Words{"--min-np", "1"} + options, mode);
    CHECK(job.job().wait_and_require_nothing_left() == 7);
    CHECK_THAT(job.job().err(), Contains(std::string("the job ends: ") + why));
  }
}

TEST_CASE("a check with a tensor that is not complete fails on all ranks, and names it", "[continued]") {
  ElasticJob job(Words{"-np", "3", "--oversubscribe", "--min-np", "1"}, "open");
  CHECK(job.job().wait_and_require_nothing_left() == 1);
  for (const std::string rank : {"[0]", "[1]", "[2]"})
    CHECK_THAT(job.job().out(), Contains(rank + "<stdout>:lost: invalid argument: ") &&
                                    Contains("rank 1 has not completed the tensor \"gradient\""));
}

TEST_CASE("ddl_abort() ends an elastic job", "[continued]") {
  ElasticJob job(kTwoNames + kNoOthers + Words{"--min-np", "2"}, "abort");
  ::kill(job.pids(0, 4).at(3), SIGKILL);
  CHECK(job.job().wait_and_require_nothing_left() == 5);
  CHECK_THAT(job.job().err(), Contains("no data"));
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
  // No host has fewer than its slots, because another has more ranks than slots.
  Job crowded(scratch, ddlrun(Words{"-H", "localhost:3,127.0.0.1:1", "-np", "4", "--oversubscribe",
                                    "--min-np", "2", "sh", "-c", "echo $LOCAL_RANK"}));
  CHECK(crowded.wait_and_require_nothing_left() == 0);
  CHECK_THAT(crowded.out(), Contains("[2]<stdout>:2\n") && Contains("[3]<stdout>:0\n"));
}

}  // namespace
}  // namespace ddl::e2e
