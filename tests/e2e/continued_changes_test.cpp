// Jobs whose ranks go on: hosts and ranks that come and leave, what of the state goes where, and what is shown.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include <nlohmann/json.hpp>

#include "base/fd.h"
#include "base/process.h"
#include "base/text.h"
#include "contract/ddlrun.h"
#include "e2e/harness/elastic_job.h"
#include "e2e/harness/fifo.h"
#include "e2e/harness/listed_hosts.h"
#include "e2e/harness/processes.h"
#include "support/catch.h"
#include "timeline/trace_checker.h"

namespace ddl::e2e {
namespace {

using Catch::Matchers::Contains;
using Words = std::vector<std::string>;
namespace contract = ddl::contract;

TEST_CASE("hosts that a discovery script adds and removes join and leave at a step", "[continued]") {
  const Scratch scratch;
  const ListedHosts hosts(scratch, "localhost:1\n");
  ElasticJob job(Words{"-np", "1", "--host-discovery-script", hosts.script(), "--elastic-settle", "20"});
  const auto first = job.pids(0, 1);
  hosts.set("localhost:1\n127.0.0.1:1\n");
  const auto second = job.pids(1, 2);
  CHECK(second.at(0) == first.at(0));
  hosts.set("127.0.0.1:1\n");
  const auto third = job.pids(2, 1);
  CHECK(third.at(0) == second.at(1));
  // A host may get more slots, and fewer.
  hosts.set("127.0.0.1:3\n");
  const auto fourth = job.pids(3, 3);
  CHECK(fourth.at(0) == third.at(0));
  hosts.set("127.0.0.1:2\n");
  const auto fifth = job.pids(4, 2);
  for (const int rank : {0, 1}) CHECK(fifth.at(rank) == fourth.at(rank));
  // While the script fails there are the hosts that it has named last, and that is said once.
  const std::string keeps = "; the job keeps the hosts that it has\n";
  hosts.fail();
  job.job().wait_for(keeps);
  CHECK(job.job().is_silent_for(std::chrono::milliseconds(1500)));  // it is run again each second
  hosts.set("127.0.0.1:1\n");
  CHECK(job.pids(5, 1).at(0) == third.at(0));
  CHECK(job.stop() == 0);
  CHECK(job.job().out().find("lost:") == std::string::npos);
  CHECK(occurrences(job.job().err(), keeps) == 1);
}

TEST_CASE(
    "a host that goes before the ranks commit changes nothing; one that waits joins when a rank is lost",
    "[continued]") {
  const Scratch scratch;
  const ListedHosts hosts(scratch, "localhost:2\n");
  ElasticJob job(
      Words{"-np", "2", "--min-np", "1", "--host-discovery-script", hosts.script(), "--elastic-settle", "0"} +
          kNoOthers,
      "waits");
  const auto first = job.pids(0, 2);
  const auto wait_for_another = [&](std::size_t number, const std::string& host) {
    const std::string joins = "joins later: pid ";
    hosts.set("localhost:2\n" + host);
    job.job().wait_for(joins, number);
    const std::string& out = job.job().out();
    return std::stoi(out.substr(out.rfind(joins) + joins.size()));
  };
  const int gone = wait_for_another(1, "127.0.0.1:1\n");
  hosts.set("localhost:2\n");
  REQUIRE(wait_for_end_of(gone, Deadline::after(kTestTimeout)));
  job.scratch().write("go", "");
  (void)wait_for_another(2, "127.0.0.1:1\n");
  const auto second = job.pids(1, 3);
  for (const int rank : {0, 1}) CHECK(second.at(rank) == first.at(rank));

  std::filesystem::remove(job.scratch().path("go"));
  const int another = wait_for_another(3, "127.0.0.1:2\n");
  ::kill(first.at(1), SIGKILL);
  job.scratch().write("go", "");
  job.job().wait_for(" rank 2 of 3, local 1 of 2, pid " + std::to_string(another));
  CHECK(job.stop() == 0);
  CHECK_THAT(job.job().err(), !Contains("generation 4"));
}

TEST_CASE(
    "no rank begins before there are slots for all that the job needs, also of a program that never joins",
    "[continued]") {
  const Scratch scratch;
  const ListedHosts hosts(scratch, "localhost:1\n");
  Job job(scratch, ddlrun({"--min-np", "2", "--host-discovery-script", hosts.script(), "echo", "begins"}));
  job.wait_until("the job waits",
                 [&] { return job.err().find("; waiting for others\n") != std::string::npos; });
  CHECK(job.out().empty());
  hosts.set("localhost:1\n127.0.0.1:1\n");
  CHECK(job.wait_and_require_nothing_left() == 0);
  CHECK(occurrences(job.out(), "begins\n") == 2);
}

TEST_CASE("a fit through kills has the result of one without them", "[continued]") {
  const Words words = Words{"-H", "localhost:2,127.0.0.1:2", "--oversubscribe"};
  const Scratch scratch;
  Job elastic(scratch, ddlrun(words + kNoOthers + Words{"--min-np", "1", fit_program(), "60000"}));
  elastic.wait_for("generation 0: rank ", 4);
  for (const std::string name : {"[3]", "[0]"}) {
    const auto line = elastic.out().find(name + "<stdout>:generation 0: ");
    ::kill(std::stoi(elastic.out().substr(elastic.out().find("process ", line) + 8)), SIGKILL);
    elastic.wait_for(name == "[3]" ? " of 3 (process " : " of 2 (process ", name == "[3]" ? 3 : 2);
  }
  CHECK(elastic.wait_and_require_nothing_left() == 0);
  CHECK(loss_of_fit(elastic.out()) == undisturbed_loss());
}

TEST_CASE("ranks whose GPUs wait for one that has died go on", "[continued]") {
  for (const std::string operations : {"nccl", "staged"}) {
    CAPTURE(operations);
    const Scratch scratch;
    Job job(scratch, ddlrun(Words{"-np", "3", "--oversubscribe", "--min-np", "1"} + kNoOthers +
                            Words{"--gpu-operations", operations, "-x", "LD_LIBRARY_PATH=" DDL_E2E_STAND_INS,
                                  program("elastic_gpu")}));
    CHECK(job.wait_and_require_nothing_left() == 0);
    for (const std::string line : {"0]<stdout>:generation 1: rank 0", "2]<stdout>:generation 1: rank 1"})
      CHECK_THAT(job.out(), Contains(line + " of 2, pid "));
    CHECK(occurrences(job.out(), ": done\n") == 2);
    CHECK(occurrences(job.out(), ": rank 1 on ") == 2);
  }
}

TEST_CASE("a host whose processes fail or hang before they join does not disturb the job", "[continued]") {
  const Scratch scratch;
  const std::string script =
      scratch.write("discover", "#!/bin/sh\necho localhost:2; [ ! -e more ] || echo 127.0.0.1:2\n", true);
  for (const std::string before :
       {"[ $DDL_GENERATION = 0 ] || exit 3; ", "[ $DDL_GENERATION = 0 ] || exec sleep 1000; "}) {
    CAPTURE(before);
    std::filesystem::remove(scratch.path("more"));
    Job job(scratch, ddlrun(Words{"-np", "2", "--min-np", "1", "--host-discovery-script", script,
                                  "--elastic-settle", "0", "--verbose", "sh", "-c",
                                  before + "exec " + program("elastic_program") + " slow"}));
    job.wait_for("generation 0: rank ", 2);
    scratch.write("more", "");
    job.wait_for(before.find("exit") == std::string::npos ? "starting 2 processes on 127.0.0.1"
                                                          : "that was to join exited with 3");
    scratch.write("stop", "");
    CHECK(job.wait_and_require_nothing_left() == 0);
    CHECK_THAT(job.out() + job.err(), !Contains("generation 1") && !Contains("lost:"));
    std::filesystem::remove(scratch.path("stop"));
  }
}

TEST_CASE("what ranks had of their own goes to those that are left, and to new ones", "[continued]") {
  const Scratch scratch;
  const auto run = [&](const Words& options, const Words& arguments) {
    Job job(scratch, ddlrun(kTwoNames + Words{"--min-np", "1"} + options + Words{program("elastic_shards")} +
                            arguments));
    const int status = job.wait_and_require_nothing_left();
    return std::pair(status, job.out() + job.err());
  };
  const auto ends = [](const std::pair<int, std::string>& ended, int status, const std::string& text) {
    CHECK(ended.first == status);
    CHECK_THAT(ended.second, Contains(text));
  };
  ends(run(kNoOthers, {"3", "3"}), 0, "generation 1: step 8 of rank 2");
  ends(run(kNoOthers, {"23", "2"}), 0, "generation 1: step 8 of rank 1");  // a host
  ends(run(kOthersAtOnce, {"0", "4"}), 0, " of rank 3");
  ends(run(kNoOthers, {"3", "3", "keep"}), 1, "a shard has no function that makes the parts anew");
  const std::string lost =
      "the shards of ranks 1, 3 of 4 at commit 4 are lost with the ranks that held a copy";
  ends(run(kNoOthers, {"13", "2"}), 1, lost + ", and there is no file of an earlier commit");
  const Words file{"--state-dir", scratch.path("state"), "--state-interval", "2"};
  ends(run(kNoOthers + file, {"13", "2"}), 0, lost + "; going back to commit 4 in " + scratch.path("state"));
  CHECK(std::filesystem::is_empty(scratch.path("state")));
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

TEST_CASE("a job whose ranks go on has one timeline, with all its processes and generations", "[continued]") {
  const Scratch scratch;
  const std::string file = scratch.path("trace.json");
  ElasticJob job(kTwoNames + kOthersAtOnce + Words{"--min-np", "2", "--timeline-filename", file});
  const auto first = job.pids(0, 4);
  ::kill(first.at(3), SIGKILL);
  (void)job.pids(1, 3);
  const auto last = job.pids(2, 4);
  // With its agent all that its ranks have recorded is lost.
  const int agent = read_process_stat(read_process_stat(last.at(3))->parent)->parent;
  ::kill(agent, SIGKILL);
  job.job().wait_for("generation 3: rank ");
  CHECK(job.stop() == 0);
  std::ifstream stream(file);
  const std::string text{std::istreambuf_iterator<char>(stream), {}};
  CHECK(test::trace_errors(text) == std::vector<std::string>{});
  std::map<int, std::string> processes, marks;
  const auto trace = nlohmann::json::parse(text);
  for (const nlohmann::json& event : trace["traceEvents"]) {
    const int process = event["pid"];
    const std::string name = event["name"];
    if (name == "process_name") processes[process] = event["args"]["name"];
    if (name.starts_with("generation ")) marks[process] += name + "; ";
  }
  CHECK(processes.at(0) == "rank 0 (localhost, pid " + std::to_string(first.at(0)) + ")");
  CHECK(processes.at(3) == "rank 3 (127.0.0.1, pid " + std::to_string(first.at(3)) + ")");
  CHECK(processes.at(4) == "rank 3 (127.0.0.1, pid " + std::to_string(last.at(3)) + "): no events");
  CHECK_THAT(marks.at(0), Contains("generation 0: rank 0 of 4; generation 1: rank 0 of 3; generation 2: "));
  CHECK(marks.at(3) == "generation 0: rank 3 of 4; ");
  CHECK_FALSE(marks.contains(4));
  Job refused(scratch, ddlrun(kTwoNames +
                              Words{"--min-np", "2", "--timeline-filename", "/nowhere/trace.json", "true"}));
  CHECK(refused.wait_and_require_nothing_left() == contract::kUsageError);
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
      kTwoNames + kNoOthers + Words{"--stall-check-shutdown-time-seconds", "1", "--min-np", "1"}, "hang0");
  const auto first = limited.pids(0, 4);
  const auto second = limited.pids(1, 3);
  CHECK(second.at(1) == first.at(2));
  CHECK_THAT(limited.job().err(), Contains("3 of 4 ranks have waited") &&
                                      Contains("rank 1 on localhost (pid " + std::to_string(first.at(1)) +
                                               ") is killed: it has been in user code for ") &&
                                      Contains(" s, and waits in the system call "));
  // One that is stopped somewhere in a call. Another may wait in the same call, and the third one in the next.
  ::kill(second.at(2), SIGSTOP);
  const auto third = limited.pids(2, 2);
  CHECK(pid_set(third) == std::set<int>{second.at(0), second.at(1)});
  CHECK_THAT(limited.job().err(),
             Contains("(pid " + std::to_string(second.at(2)) + ") is killed: it is stopped (SIGSTOP)"));
  CHECK(limited.stop() == 0);
}

}  // namespace
}  // namespace ddl::e2e
