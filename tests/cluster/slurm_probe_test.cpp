// slurm-probe and scontrol, asked about the same real Slurm.
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

/// Where this build has it; "" if it was built without libslurm.
std::string probe_path() {
#ifdef DDL_CLUSTER_SLURM_PROBE
  return DDL_CLUSTER_SLURM_PROBE;
#else
  return "";
#endif
}

/// The error that the probe prints with this configuration and so many milliseconds; it must answer soon.
std::string error_with(const std::string& configuration, const std::string& patience) {
  const e2e::Scratch scratch;
  e2e::Command command;
  command.argv = {probe_path(), patience};
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

TEST_CASE("slurm-probe and scontrol tell the same facts", "[slurm]") {
  if (probe_path().empty()) DDL_CLUSTER_SKIP("slurm-probe was built without libslurm");
  const auto told = templates::ask_cluster("", 60s);
  REQUIRE(told);
  const auto probed = templates::ask_cluster(probe_path(), 60s);
  REQUIRE(probed);
  // Only the probe tells these, by which the answer is known to be its own.
  CHECK(probed->name == "ddl");
  CHECK_THAT(probed->version, Contains("."));
  CHECK(probed->partitions == told->partitions);
  CHECK(probed->nodes == told->nodes);
  REQUIRE(probed->nodes.size() == 2);
  CHECK(probed->nodes[1] == templates::NodeKind{"node3", 2, {"gpu", "main"}, 128, 8, 480000, {"gpu"}});
}

TEST_CASE("changes that Slurm is told of are seen by both", "[slurm]") {
  if (probe_path().empty()) DDL_CLUSTER_SKIP("slurm-probe was built without libslurm");
  Cluster cluster;
  const auto update = [&](const char* state, const char* nodes, const char* time) {
    cluster.on_host("head", {"scontrol", "update", "partitionname=gpu", std::string("state=") + state,
                             std::string("maxnodes=") + nodes, std::string("maxtime=") + time});
  };
  update("drain", "1", "1-02:03:00");
  const auto told = templates::ask_cluster("", 60s);
  const auto probed = templates::ask_cluster(probe_path(), 60s);
  update("up", "unlimited", "60");
  REQUIRE(told);
  REQUIRE(probed);
  CHECK(probed->partitions == told->partitions);
  templates::ClusterRequest request;
  request.partition = "gpu";
  request.nodes = 2;
  request.minutes = 2000;
  const auto objections = templates::check_against(*probed, request);
  REQUIRE(objections.size() == 3);
  CHECK(objections[0].rule == "too-many-nodes");
  CHECK(objections[1].sentence ==
        "a time of 1 day 9 hours 20 minutes was asked for, and partition gpu gives a job 1 day 2 hours 3 "
        "minutes at most");
  CHECK(objections[2].rule == "partition-down");
}

TEST_CASE("slurm-probe answers in time, also where libslurm does not", "[slurm]") {
  if (probe_path().empty()) DDL_CLUSTER_SKIP("slurm-probe was built without libslurm");
  // libslurm alone would try for a minute to read the first, end the process for the second, and wait for the third.
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
