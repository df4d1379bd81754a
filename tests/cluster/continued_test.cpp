// Jobs whose ranks go on when a host is lost, and with it when it returns.
#include "cluster/harness/cluster.h"
#include "cluster/harness/host_job.h"
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
  CHECK_THAT(job.err(), Contains("node2: ") && Contains("generation 1: going on with 2 ranks on node1"));
  cluster.heal("node2");
  job.before().with_all_sshd();
  job.job().wait_for("generation 2: rank ", 4);
  CHECK(job.wait() == 0);
  CHECK_THAT(job.err(), Contains("generation 2: going on with 4 ranks on node1, node2"));
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
