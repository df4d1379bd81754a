// --check-hosts over real hosts: asks all at once, reports each, and leaves no process.
#include <nlohmann/json.hpp>

#include "cluster/harness/cluster.h"
#include "cluster/harness/host_job.h"
#include "contract/ddlrun.h"
#include "contract/version.h"
#include "support/catch.h"

namespace ddl::cluster {
namespace {

using Catch::Matchers::Contains;
using nlohmann::json;

/// The report of --check-hosts --json on these hosts; checks the exit code.
json check(const std::string& hosts, int exit_code, const std::string& start_timeout = "30") {
  HostJob job({"--check-hosts", "--json", "-H", hosts, "--start-timeout", start_timeout});
  const int status = job.wait();
  INFO(job.out() << job.err());
  CHECK(status == exit_code);
  return json::parse(job.out());
}

std::string failure_of(const json& report, std::size_t host) {
  INFO(report.dump(2));
  CHECK(report["hosts"].at(host)["reachable"] == false);
  return report["hosts"].at(host)["failure"].get<std::string>();
}

TEST_CASE("--check-hosts reports the properties of every host", "[check_hosts]") {
  const json report = check("node[1-3],[fd77::4]", contract::kSuccess);
  CHECK(report["failed"] == 0);
  REQUIRE(report["hosts"].size() == 4);
  for (std::size_t i = 0; i < 4; ++i) {
    const json& host = report["hosts"][i];
    INFO(host.dump(2));
    CHECK(host["reachable"] == true);
    CHECK(host["hostname"] == "node" + std::to_string(i + 1));
    CHECK(host["version"] == contract::kVersion);
    CHECK(host["cpus"].get<int>() >= 1);
    CHECK(host["memory_bytes"].get<std::int64_t>() > 0);
    CHECK(host["tmp_free_bytes"].get<std::int64_t>() > 0);
    CHECK(host["shm_free_bytes"].get<std::int64_t>() > 0);
    CHECK(std::abs(host["clock_offset_seconds"].get<double>()) < 5);
    CHECK(host["addresses"].dump().find("10.77.0." + std::to_string(i + 1)) != std::string::npos);
  }
  CHECK(report["hosts"][3]["name"] == "fd77::4");
}

TEST_CASE("a host that fails has a failure of its own, and the others are still reported", "[check_hosts]") {
  Cluster cluster;
  cluster.fill("node2");
  const json report = check("node1,refused,silent,node2,node3", contract::kStartFailure, "5");
  CHECK(report["failed"] == 3);
  CHECK_THAT(failure_of(report, 1), Contains("Connection refused"));
  // The timeouts of ssh and ddlrun are equal: either may report the failure.
  CHECK_THAT(failure_of(report, 2),
             Contains("it does not answer") || Contains("within 5 s (--start-timeout)"));
  CHECK_THAT(failure_of(report, 3), Contains("/tmp") && Contains("No space left on device"));
  CHECK(report["hosts"][0]["reachable"] == true);
  CHECK(report["hosts"][4]["reachable"] == true);
}

TEST_CASE("a value that differs on one host is marked in the table", "[check_hosts]") {
  Cluster cluster;
  cluster.twin("node2");
  HostJob job({"--check-hosts", "-H", "node[1-4]"});
  CHECK(job.wait() == contract::kSuccess);
  CHECK_THAT(job.out(), Contains("docker0") && Contains("4 hosts answered\n"));
  CHECK_THAT(job.out(), Contains("node2: interfaces is "));
}

}  // namespace
}  // namespace ddl::cluster
