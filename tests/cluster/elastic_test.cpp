// Jobs whose ranks are started again when a host is lost, and when it returns.
#include "cluster/harness/cluster.h"
#include "cluster/harness/host_job.h"
#include "support/catch.h"

namespace ddl::cluster {
namespace {

using Catch::Matchers::Contains;

TEST_CASE("when a host is cut off, the ranks start again on the others, and on it when it is back",
          "[elastic]") {
  Cluster cluster;
  HostJob job(
      {"-H", "node1:2,node2:2", "--elastic", "restart", "--min-np", "1", "--kill-grace", "0.3",
       "--start-timeout", "5", "--elastic-settle", "0", "--blacklist-cooldown-range", "1", "1", "sh", "-c",
       "echo \"$RANK of $WORLD_SIZE in $DDL_GENERATION\"; [ $DDL_GENERATION = 2 ] || exec sleep 1000"});
  job.job().wait_for(" of 4 in 0", 4);
  job.before().without_sshd_on("node2");  // sshd cannot detect the partition
  cluster.partition("node2");
  job.job().wait_for(" of 2 in 1", 2);
  CHECK_THAT(job.err(), Contains("node2: ") && Contains("generation 1: starting 2 ranks on node1"));
  // It is asked, and does not answer: the ranks go on.
  job.job().wait_for("node2 cannot join the job, which goes on without it: ");
  cluster.heal("node2");
  job.before().with_all_sshd();
  job.job().wait_for(" of 4 in 2", 4);
  CHECK(job.wait() == 0);
  CHECK_THAT(job.err(), Contains("node2 joins the job, so the ranks have been ended") &&
                            Contains("generation 2: starting 4 ranks on node1, node2"));
}

TEST_CASE("when a host dies, a spare takes its place", "[elastic]") {
  Cluster cluster;
  HostJob job({"-np", "4", "-H", "node1:2,node2:2,node3:2", "--elastic", "restart", "--max-np", "4", "sh",
               "-c",
               "echo \"$RANK of $WORLD_SIZE on $(hostname)\"; [ $DDL_GENERATION = 1 ] || exec sleep 1000"});
  job.job().wait_for(" of 4 on node2", 2);
  cluster.kill("node2");
  CHECK(job.wait() == 0);
  CHECK_THAT(job.out(), Contains("[2]<stdout>:2 of 4 on node3") && Contains("[0]<stdout>:0 of 4 on node1"));
  CHECK_THAT(job.err(), Contains("generation 1: starting 4 ranks on node1, node3"));
}

}  // namespace
}  // namespace ddl::cluster
