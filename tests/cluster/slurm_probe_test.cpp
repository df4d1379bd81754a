// slurm-probe and scontrol on the same real Slurm.
#include <string>

#include <nlohmann/json.hpp>

#include "base/deadline.h"
#include "cluster/harness/cluster.h"
#include "support/catch.h"
#include "support/skip.h"
#include "templates/cluster/cluster_check.h"
#include "templates/cluster/cluster_query.h"

namespace ddl::cluster {
namespace {

using namespace std::chrono_literals;
using Catch::Matchers::Contains;

/// The path of slurm-probe in this build; "" if it was built without libslurm.
std::string probe_path() {
#ifdef DDL_CLUSTER_SLURM_PROBE
  return DDL_CLUSTER_SLURM_PROBE;
#else
  return "";
#endif
}

/// The error that the probe prints with this configuration and this timeout in milliseconds; it must answer soon.
std::string error_with(const std::string& configuration, const std::string& timeout) {
  const e2e::Scratch scratch;
  e2e::Command command;
  command.argv = {probe_path(), timeout};
  command.environment["SLURM_CONF"] = configuration;
  const Deadline deadline = Deadline::after(20s);
  e2e::Job job(scratch, command);
  CHECK(job.wait() == 1);
  CHECK_FALSE(deadline.has_passed());
  const auto answer = nlohmann::json::parse(job.out(), nullptr, false);
  REQUIRE(answer.is_object());
  return answer.value("error", "");
}

}  // namespace

TEST_CASE("slurm-probe and scontrol give the same facts", "[slurm]") {
  if (probe_path().empty()) DDL_CLUSTER_SKIP("slurm-probe was built without libslurm");
  const auto by_scontrol = templates::ask_cluster("", 60s);
  REQUIRE(by_scontrol);
  const auto by_probe = templates::ask_cluster(probe_path(), 60s);
  REQUIRE(by_probe);
  // Only slurm-probe reports these fields, so the answer is not that of scontrol.
  CHECK(by_probe->name == "ddl");
  CHECK_THAT(by_probe->version, Contains("."));
  CHECK(by_probe->partitions == by_scontrol->partitions);
  CHECK(by_probe->nodes == by_scontrol->nodes);
  REQUIRE(by_probe->nodes.size() == 2);
  templates::NodeKind node = by_probe->nodes[1];
  const std::vector<std::string> partitions = {"main", "gpu", "accel", "booster", "standard-g"};
  CHECK_THAT(node.partitions, Catch::Matchers::UnorderedEquals(partitions));
  node.partitions.clear();
  CHECK(node == templates::NodeKind{"node3", 2, {}, 128, 8, 480000, {"gpu"}});
}

TEST_CASE("both show changes of the configuration", "[slurm]") {
  if (probe_path().empty()) DDL_CLUSTER_SKIP("slurm-probe was built without libslurm");
  Cluster cluster;
  const auto update = [&](const char* state, const char* nodes, const char* time) {
    cluster.on_host("head", {"scontrol", "update", "partitionname=gpu", std::string("state=") + state,
                             std::string("maxnodes=") + nodes, std::string("maxtime=") + time});
  };
  update("drain", "1", "1-02:03:00");
  const auto by_scontrol = templates::ask_cluster("", 60s);
  const auto by_probe = templates::ask_cluster(probe_path(), 60s);
  update("up", "unlimited", "60");
  REQUIRE(by_scontrol);
  REQUIRE(by_probe);
  CHECK(by_probe->partitions == by_scontrol->partitions);
  templates::ClusterRequest request;
  request.partition = "gpu";
  request.nodes = 2;
  request.minutes = 2000;
  const auto findings = templates::check_against(*by_probe, request);
  REQUIRE(findings.size() == 3);
  CHECK(findings[0].rule == "too-many-nodes");
  CHECK(findings[1].sentence ==
        "a time of 1 day 9 hours 20 minutes was asked for, and partition gpu gives a job 1 day 2 hours 3 "
        "minutes at most");
  CHECK(findings[2].rule == "partition-down");
}

TEST_CASE("slurm-probe answers in time even if libslurm does not", "[slurm]") {
  if (probe_path().empty()) DDL_CLUSTER_SKIP("slurm-probe was built without libslurm");
  // libslurm would retry for a minute in the first case, end the process in the second, and wait in the third.
  CHECK(error_with("/nonexistent/slurm.conf", "10000") ==
        "SLURM_CONF names /nonexistent/slurm.conf, which cannot be read");
  const e2e::Scratch scratch;
  CHECK_THAT(error_with(scratch.write("garbage.conf", "no configuration\n"), "10000"),
             Contains("libslurm ended: "));
  const std::string away =
      scratch.write("away.conf", "ClusterName=ddl\nSlurmctldHost=head(127.0.0.1)\nSlurmctldPort=1\n");
  CHECK(error_with(away, "500") == "Slurm does not answer within 500 ms");
}

}  // namespace ddl::cluster
