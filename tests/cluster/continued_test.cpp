// Jobs whose ranks go on when a host is lost, and with it when it returns.
#include <csignal>

#include "cluster/harness/cluster.h"
#include "cluster/harness/host_job.h"
#include "e2e/harness/listed_hosts.h"
#include "support/catch.h"

namespace ddl::cluster {
namespace {

using Catch::Matchers::Contains;
using e2e::program;

TEST_CASE("when a host is cut off, the ranks of the others go on, and with it when it is back",
          "[continued]") {
  Cluster cluster;
  HostJob job({"-H", "node1:2,node2:2", "--min-np", "1", "--kill-grace", "0.3", "--start-timeout", "2",
               "--blacklist-cooldown-range", "1", "1", program("elastic_program"), "stop2"});
  job.job().wait_for("generation 0: rank ", 4);
  job.before().without_sshd_on("node2");  // sshd cannot detect the partition
  cluster.partition("node2");
  job.job().wait_for("generation 1: rank ", 2);
  CHECK_THAT(job.err(), Contains("node2: nothing has been heard from its agent for 3.2 s") &&
                            Contains("generation 1: going on with 2 ranks on node1"));
  const auto is_rank_there = [](const HostProcess& one) {
    return one.host == "node2" && one.name == "elastic_program";
  };
  CHECK(job.before().wait_until_none_left(is_rank_there, Deadline::after(e2e::kTestTimeout)).empty());
  cluster.heal("node2");
  job.before().with_all_sshd();
  job.job().wait_for("generation 2: rank ", 4);
  CHECK(job.wait() == 0);
  CHECK_THAT(job.err(), Contains("generation 2: going on with 4 ranks on node1, node2"));
}

TEST_CASE("hosts that do not answer, or have another version, do not disturb the job, and join when they can",
          "[continued]") {
  Cluster cluster;
  const SharedScratch files;
  const e2e::ListedHosts hosts(files, "node1:2\n");
  cluster.partition("node2");
  cluster.cover(
      "node3", DDL_E2E_DDLRUN,
      files.write("other-version", "#!/bin/sh\necho \"ddlrun-agent 9.8.7 $2\"\nexec cat >/dev/null\n", true));
  HostJob job({"-np", "2", "--min-np", "1", "--host-discovery-script", hosts.script(), "--elastic-settle",
               "0", "--start-timeout", "5", "--blacklist-cooldown-range", "1", "1",
               program("elastic_program"), "stop1"});
  job.job().wait_for("generation 0: rank ", 2);
  hosts.set("node1:2\nnode2:2\nnode3:2\n");
  for (const std::string node : {"node2: ", "node3: "})
    job.job().wait_until(node, [&] { return job.err().find("ddlrun: " + node) != std::string::npos; });
  CHECK_THAT(job.err(), Contains("ddlrun there is version 9.8.7") && !Contains("generation 1"));
  cluster.heal("node2");
  job.job().wait_until("it joins", [&] { return job.err().find(" on node1, node2") != std::string::npos; });
  CHECK(job.wait() == 0);
  CHECK(job.out().find("lost:") == std::string::npos);
}

TEST_CASE("when ddlrun is killed, nothing of an elastic job is left on any host", "[continued]") {
  HostJob job({"-H", "node1:2,node2:2", "--min-np", "1", program("elastic_program")});
  job.job().wait_for("generation 0: rank ", 4);
  job.job().send(SIGKILL);
  CHECK(job.wait() == 128 + SIGKILL);
}

TEST_CASE("when a host dies, spares that wait take its place at once", "[continued]") {
  Cluster cluster;
  HostJob job({"-np", "4", "-H", "node1:2,node2:2,node3:2", "--max-np", "4", "--spares", "2", "--verbose",
               program("elastic_program"), "stop1"});
  job.job().wait_for("generation 0: rank ", 4);
  job.job().wait_for("process ", 6);
  cluster.kill("node2");
  job.job().wait_for("generation 1: rank ", 4);
  CHECK(job.wait() == 0);
  CHECK_THAT(job.err(), Contains("generation 1: going on with 4 ranks on node1, node3"));
}

}  // namespace
}  // namespace ddl::cluster
