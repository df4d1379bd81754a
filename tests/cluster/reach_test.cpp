// Reaching hosts: busy bastions, trees of agents, reports of --check-hosts and --verbose, other launchers.
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "cluster/harness/cluster.h"
#include "cluster/harness/gate.h"
#include "cluster/harness/host_job.h"
#include "contract/ddlrun.h"
#include "e2e/harness/fifo.h"
#include "support/catch.h"
#include "support/skip.h"

namespace ddl::cluster {
namespace {

using Catch::Matchers::Contains;
using nlohmann::json;

// The gate's address is not in known_hosts.
std::vector<std::string> through(const Gate& gate, std::vector<std::string> words) {
  words.insert(words.begin(), {"-p", std::to_string(gate.port()), "--ssh-args",
                               "-o HostKeyAlias=node1 -o CheckHostIP=no", "-H", "10.77.0.254:1"});
  return words;
}

TEST_CASE("ssh is retried if a bastion drops the first connections", "[reach]") {
  const Gate gate("node1", 2);
  HostJob job(through(gate, {"--launcher", "ssh", "hostname"}));
  CHECK(job.wait() == 0);
  CHECK_THAT(job.out(), Contains("node1"));
  CHECK(gate.connections() == 3);
}

TEST_CASE("a bastion that drops every connection is a failure with ssh's message after the start timeout",
          "[reach]") {
  const Gate gate("node1", 1000);
  HostJob job(through(gate, {"--launcher", "ssh", "--start-timeout", "3", "hostname"}));
  CHECK(job.wait() == contract::kStartFailure);
  CHECK(gate.connections() > 1);
  CHECK_THAT(job.err(), Contains("ddlrun: 10.77.0.254: "));
  CHECK_THAT(job.err(), Contains("kex_exchange_identification") || Contains("Connection closed"));
}

TEST_CASE("with --fan-out hosts connect to hosts, and the death of any agent ends the job", "[reach]") {
  const std::string hosts = "node1:1,node2:1,node3:1,node4:1";
  {
    HostJob job({"-H", hosts, "--fan-out", "1", "sh", "-c", "echo rank $RANK on $(hostname)"});
    CHECK(job.wait() == 0);
    for (const std::string rank : {"0 on node1", "1 on node2", "2 on node3", "3 on node4"})
      CHECK_THAT(job.out(), Contains("rank " + rank + "\n"));
  }
  for (const std::string host : {"node1", "node2", "node4"}) {
    CAPTURE(host);
    HostJob job(
        {"-H", hosts, "--fan-out", "1", "--kill-grace", "0.3", e2e::program("daemon_family"), "stay"});
    job.job().wait_for("ready", 4);
    const auto agents = job.processes("ddl-agent", host);
    REQUIRE(agents.size() == 1);
    Cluster cluster;
    cluster.on_host("head", {"kill", "-KILL", std::to_string(agents.front().pid)});
    CHECK(job.wait() == contract::kLostHost);
    CHECK_THAT(job.err(), Contains(host));
  }
}

TEST_CASE("--check-hosts reports every host, and the reason if one cannot be asked", "[reach]") {
  HostJob job({"--check-hosts", "--json", "-H", "node1,node2,inner,refused"});
  CHECK(job.wait() == contract::kStartFailure);
  const json report = json::parse(job.out());
  REQUIRE(report["hosts"].size() == 4);
  for (int host = 0; host < 3; ++host) {
    const json& one = report["hosts"][static_cast<std::size_t>(host)];
    INFO(one.dump());
    CHECK(one["reachable"] == true);
    CHECK(one["cpus"].get<int>() > 0);
    CHECK(std::abs(one["clock_offset_seconds"].get<double>()) < 5);
  }
  CHECK(report["hosts"][3]["reachable"] == false);
  CHECK_THAT(report["hosts"][3]["failure"].get<std::string>(), Contains("Connection refused"));
  HostJob all({"--check-hosts", "-H", "node2,node4"});
  CHECK(all.wait() == 0);
  CHECK_THAT(all.out(), Contains("node2") && Contains("node4"));
}

TEST_CASE("a clock that is wrong by an hour is marked by --check-hosts, and does not affect a job",
          "[reach]") {
  if (std::string(DDL_E2E_SANITIZE).find("address") != std::string::npos)
    DDL_SKIP("AddressSanitizer refuses what is loaded before it");
  const std::string start_up = "/home/late/.bashrc";
  Cluster cluster;
  cluster.on_host(
      "head",
      {"sh", "-c", std::string("echo export LD_PRELOAD=") + DDL_CLUSTER_CLOCK_SKEW + " >" + start_up});
  HostJob check({"--check-hosts", "--json", "-H", "node1,node2,late@node3"});
  CHECK(check.wait() == 0);
  const json report = json::parse(check.out());
  CHECK(report["hosts"][2]["clock_offset_seconds"].get<double>() == Approx(3600).margin(5));
  CHECK_THAT(report["remarks"].dump() + report["hosts"][2]["noticed"].dump(), Contains("clock"));
  HostJob job({"-H", "node1:1,late@node3:1", e2e::program("ddl_program"), "sum"});
  CHECK(job.wait() == 0);
  CHECK(e2e::occurrences(job.out(), "0 wrong sums") == 4);
  cluster.on_host("head", {"rm", start_up});
}

TEST_CASE("--verbose reports the times of the start-up, and without it nothing is printed to a pipe",
          "[reach]") {
  HostJob verbose({"--verbose", "-H", "node1:1,node2:1", e2e::program("ddl_program"), "sum"});
  CHECK(verbose.wait() == 0);
  CHECK_THAT(verbose.err(), Contains("agents ready after ") && Contains("(slowest node") &&
                                Contains("all ranks started after ") && Contains("all initialised after ") &&
                                Contains("first collective done after "));
  HostJob quiet({"-H", "node1:1,node2:1", e2e::program("ddl_program"), "sum"});
  CHECK(quiet.wait() == 0);
  CHECK(quiet.err().empty());
}

TEST_CASE("while agents start a terminal shows the hosts that have not answered", "[reach]") {
  e2e::Command settings;
  settings.terminal = true;
  HostJob job({"--start-timeout", "4", "-H", "node1:1,hang@node2:1", "true"}, settings);
  job.job().wait_for("1 of 2 hosts");
  job.job().wait_for("node2");
  CHECK(job.wait() == contract::kStartFailure);
}

#ifdef DDL_CLUSTER_OPEN_MPI
TEST_CASE("a libddl program has the same results under mpirun on the same hosts", "[reach]") {
  const std::string mpirun = DDL_E2E_MPIEXEC;
  std::vector<std::string> words = {"-np", "4", "-H", "node1:2,node2:2", "--wdir", "/home/shared"};
  if (tested_login() == "root") words.emplace_back("--allow-run-as-root");
  // mpirun passes only variables of -x to other hosts: here the suppression of libpmix's leaks.
  if (std::getenv("LSAN_OPTIONS") != nullptr) words.insert(words.end(), {"-x", "LSAN_OPTIONS"});
  words.insert(words.end(), {e2e::program("ddl_program"), "sum"});
  words.insert(words.begin(), mpirun);
  const e2e::Scratch scratch;
  e2e::Command command = as_login(tested_login(), words);
  command.directory = "/home/shared";
  command.environment = {{"OMPI_MCA_orte_tmpdir_base", "/tmp"}};
  e2e::Job job(scratch, command);
  const int status = job.wait();
  INFO(job.err());
  CHECK(status == 0);
  CHECK(e2e::occurrences(job.out(), " of 4, local ") == 8);
  CHECK(e2e::occurrences(job.out(), "0 wrong sums\n") == 8);
}
#endif

}  // namespace
}  // namespace ddl::cluster
