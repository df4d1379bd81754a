// Jobs whose ranks go on, and join again by the rendezvous for Horovod's Gloo.
#include <csignal>

#include "contract/ddlrun.h"
#include "e2e/harness/elastic_job.h"
#include "support/catch.h"

namespace ddl::e2e {
namespace {

using Catch::Matchers::Contains;
using Words = std::vector<std::string>;
namespace contract = ddl::contract;

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
    CHECK(job.job().is_silent_for(std::chrono::milliseconds(1200)));
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

}  // namespace
}  // namespace ddl::e2e
