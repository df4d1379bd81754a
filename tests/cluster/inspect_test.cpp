// ddlrun --inspect and --metrics on the hosts of a job, and --inspect with hosts that do not answer.
#include <csignal>

#include <nlohmann/json.hpp>

#include "base/process.h"
#include "cluster/harness/cluster.h"
#include "cluster/harness/host_job.h"
#include "contract/ddlrun.h"
#include "support/catch.h"

namespace ddl::cluster {
namespace {

using Catch::Matchers::Contains;
using nlohmann::json;

/// Two ranks on each of two hosts; all but rank 1 wait for it.
std::vector<std::string> hanging(std::vector<std::string> options = {}) {
  options.insert(options.end(),
                 {"-H", "node1:2,node2:2", "--job-name", "hang", "--kill-grace", "0",
                  "--stall-check-warning-time-seconds", "0.3", e2e::program("ddl_program"), "wait"});
  return options;
}

struct Inspected {
  int exit_code = 0;
  std::string out;
  std::string err;
};
Inspected ask_on(const std::string& host, std::vector<std::string> words) {
  words.insert(words.begin(), DDL_E2E_DDLRUN);
  const e2e::Scratch scratch;
  e2e::Job job(scratch, as_login(tested_login(), words, host));
  const int exit_code = job.wait();
  return {exit_code, job.out(), job.err()};
}
Inspected inspect_on(const std::string& host, std::vector<std::string> words) {
  words.insert(words.begin(), "--inspect");
  return ask_on(host, std::move(words));
}
json parsed(const Inspected& inspected) {
  INFO(inspected.err);
  REQUIRE(inspected.exit_code == 0);
  return json::parse(inspected.out);
}

void send_to(pid_t pid, int signal) {
  const auto pidfd = open_pidfd(pid);
  REQUIRE(pidfd);
  REQUIRE(send_signal(pidfd->get(), signal));
}

TEST_CASE("a job is shown on the host of its head and on all of its hosts, and on no other", "[inspect]") {
  for (const std::string fan_out : {"0", "1"}) {
    CAPTURE(fan_out);
    HostJob job(hanging({"--fan-out", fan_out}));
    job.job().wait_for("allreduce #2: 3 of 4 ranks have waited");
    for (const std::string host : {"head", "node1", "node2"}) {
      CAPTURE(host);
      const json shown = parsed(inspect_on(host, {"--json"}));
      CHECK(shown["job"]["name"] == "hang");
      CHECK(shown["job"]["hosts"] == json{"node1", "node2"});
      REQUIRE(shown["ranks"].size() == 4);
      CHECK(shown["waits"][0]["missing"] == json{1});
      for (std::size_t rank = 0; rank < 4; ++rank) {
        const json& one = shown["ranks"][rank];
        CHECK(one["host"] == (rank < 2 ? "node1" : "node2"));
        CHECK(one["work"]["text"] == (rank == 1 ? "user code after allreduce #1" : "allreduce #2"));
        CHECK(one["resident_bytes"].get<std::int64_t>() > 0);
      }
    }
    CHECK_THAT(inspect_on("node2", {"hang"}).out, Contains("for rank 1 (node1, pid "));
    CHECK_THAT(ask_on("node2", {"--metrics", "hang"}).out,
               Contains("state=\"answered\"} 2\n") && Contains("host=\"node1\",rank=\"1\"} ") &&
                   Contains("host=\"node2\",rank=\"3\"} ") && Contains("host=\"node2\",device=\""));
    const Inspected none = inspect_on("node3", {});
    CHECK(none.exit_code == 1);
    CHECK_THAT(none.err, Contains("no running job of yours is seen on this host"));
    job.job().send(SIGTERM);
    CHECK(job.wait() == contract::kSignalBase + SIGTERM);
  }
}

/// Ranks 0 and 1 may be those that have not come to allreduce #2, and nobody else.
void check_wait_for_node1(const json& shown) {
  REQUIRE(shown["waits"].size() == 1);
  const json& wait = shown["waits"][0];
  CHECK(wait["unknown"] == json{0, 1});
  CHECK(wait["missing"] == json{0, 1});
  CHECK_THAT(wait["sentence"].get<std::string>(),
             Contains("allreduce #2: 2 of 4 ranks have waited for ") &&
                 Contains(", perhaps for 2 ranks: rank 0 (node1) has not answered, rank 1 (node1)"));
}

TEST_CASE("a host whose agent is stopped is named, and the ranks of the others are shown", "[inspect]") {
  HostJob job(hanging());
  job.job().wait_for("allreduce #2: 3 of 4 ranks have waited");
  const auto agents = job.processes("ddl-agent", "node1");
  REQUIRE(agents.size() == 1);
  send_to(agents.front().pid, SIGSTOP);
  const Inspected on_head = inspect_on("head", {"--json"});
  send_to(agents.front().pid, SIGCONT);
  const json shown = parsed(on_head);
  CHECK_THAT(shown["nodes"][0]["failure"].get<std::string>(), Contains("has not answered within 0.7 s"));
  CHECK(shown["nodes"][1]["failure"] == nullptr);
  for (const std::size_t rank : {0, 1}) {
    CHECK(shown["ranks"][rank]["state"] == "no_answer");
    CHECK(shown["ranks"][rank]["pid"].get<int>() > 0);
  }
  for (const std::size_t rank : {2, 3}) CHECK(shown["ranks"][rank]["work"]["text"] == "allreduce #2");
  check_wait_for_node1(shown);
  CHECK(parsed(inspect_on("node2", {"--json"}))["nodes"][0]["failure"] == nullptr);
  job.job().send(SIGTERM);
  CHECK(job.wait() == contract::kSignalBase + SIGTERM);
}

TEST_CASE("the ranks of a host that is cut off are unknown, and not said to have come", "[inspect]") {
  Cluster cluster;
  HostJob job(hanging());
  job.job().wait_for("allreduce #2: 3 of 4 ranks have waited");
  cluster.partition("node1");
  const Inspected on_head = inspect_on("head", {"--json"});
  cluster.heal("node1");
  check_wait_for_node1(parsed(on_head));
  job.job().send(SIGTERM);
  CHECK(job.wait() == contract::kSignalBase + SIGTERM);
}

TEST_CASE("on a host of the job a head that is stopped is named", "[inspect]") {
  HostJob job(hanging());
  job.job().wait_for("allreduce #2: 3 of 4 ranks have waited");
  job.job().send(SIGTSTP);
  (void)job.job().wait_until_stopped();
  const Inspected shown = inspect_on("node2", {});
  CHECK(shown.exit_code == contract::kLostHost);
  CHECK_THAT(shown.err, Contains("ddlrun itself (process ") && Contains(" does not answer"));
  job.job().send(SIGCONT);
  job.job().send(SIGTERM);
  CHECK(job.wait() == contract::kSignalBase + SIGTERM);
}

}  // namespace
}  // namespace ddl::cluster
