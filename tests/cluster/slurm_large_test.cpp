// ddlrun inside a Slurm with many nodes, some of which die.
#include <algorithm>
#include <csignal>
#include <set>

#include "base/text.h"
#include "cluster/harness/cluster.h"
#include "cluster/harness/host_job.h"
#include "cluster/harness/job_folder.h"
#include "cluster/harness/salloc.h"
#include "contract/ddlrun.h"
#include "support/catch.h"

namespace ddl::cluster {
namespace {

using Catch::Matchers::Contains;
using Words = std::vector<std::string>;

TEST_CASE("ranks run on each of 16 nodes", "[slurm_large]") {
  HostJob job({"--no-tag-output", "hostname"}, in_salloc({"-N", "16", "--ntasks-per-node", "2"}));
  CHECK(job.wait() == 0);
  INFO(job.err());
  std::multiset<std::string> hosts;
  for (const std::string_view line : split(trim(job.out()), '\n')) hosts.emplace(line);
  CHECK(hosts.size() == 32);
  CHECK(std::set(hosts.begin(), hosts.end()).size() == 16);

  // node3 and node4 have more CPUs, and therefore a separate step.
  HostJob whole({"--no-tag-output", "-np", "16", "--map-by", "node", "hostname"},
                in_salloc({"-N", "16", "--exclusive"}));
  CHECK(whole.wait() == 0);
  INFO(whole.err());
  CHECK(split(trim(whole.out()), '\n').size() == 16);

  HostJob fit({"-np", "16", DDL_CLUSTER_EXAMPLE, "--epochs", "20"}, in_salloc({"-N", "16"}));
  CHECK(fit.wait() == 0);
  CHECK_THAT(fit.out(), Contains("16 ranks, "));
}

TEST_CASE("a failure on one of many nodes is reported with its rank, and scancel is not a lost host",
          "[slurm_large]") {
  HostJob failing({"sh", "-c", "[ $RANK != 13 ] || exit 5; exec sleep 1000"},
                  in_salloc({"-N", "16", "--ntasks-per-node", "1"}));
  CHECK(failing.wait() == 5);
  CHECK_THAT(failing.err(), Contains("rank 13 on node"));
  HostJob cancelled({"sh", "-c", "echo running in $SLURM_JOB_ID; exec sleep 1000"},
                    in_salloc({"-N", "12", "--ntasks-per-node", "1"}));
  const std::string word = "running in ";
  cancelled.job().wait_for(word, 12);
  const std::size_t at = cancelled.job().out().find(word) + word.size();
  output_as_login({"scancel", cancelled.job().out().substr(at, cancelled.job().out().find('\n', at) - at)});
  CHECK(cancelled.wait() == 128 + SIGTERM);
  CHECK_THAT(cancelled.err(),
             Contains("as sent by scancel or at a time limit") && !Contains("host was lost"));
}

TEST_CASE("after each of fifty scancels of batch scripts ranks have their time to end", "[slurm_large]") {
  const JobFolder folder;
  for (int i = 0; i < 50; ++i) {
    CAPTURE(i);
    CHECK(cancel_batch_script(folder, i % 2 == 0) == 2);
  }
}

// The last test: Slurm does not use such a node for some time.
TEST_CASE("a node that dies ends the job, or its generation, and the report names it", "[slurm_lost]") {
  std::vector<std::string> idle;
  const std::string listed =
      output_as_login({"sinfo", "--noheader", "--partition", "main", "--states", "idle", "-N", "-o", "%N"});
  for (const std::string_view name : split(trim(listed), '\n')) idle.emplace_back(name);
  constexpr std::size_t kNodes = 9;  // by one srun, if there are as many
  // Slurm does not release any node of a job while one of them does not answer.
  REQUIRE(idle.size() >= 2 * kNodes + 2);
  Cluster cluster;
  // First a node that is reached through the first node of the job, then a first node.
  for (const std::size_t victim : {kNodes - 1, std::size_t{0}}) {
    const std::vector<std::string> nodes(idle.begin(), idle.begin() + kNodes);
    const std::string& lost = nodes[victim];
    CAPTURE(lost);
    // The second one starts its ranks again, on the other nodes.
    const bool is_elastic = victim == 0;
    std::vector<std::string> words = {"sh", "-c",
                                      "echo running; [ \"$DDL_GENERATION\" = 1 ] || exec sleep 1000"};
    if (is_elastic) words.insert(words.begin(), {"--elastic", "restart", "--min-np", "1"});
    HostJob job(words, in_salloc({"-N", std::to_string(kNodes), "--ntasks-per-node", "1", "--no-kill", "-w",
                                  join(nodes, ",")}));
    job.job().wait_for("running", kNodes);
    cluster.kill_for_good(lost);
    const int status = job.job().wait();
    INFO(job.err());
    CHECK(status == (is_elastic ? contract::kSuccess : contract::kLostHost));
    CHECK_THAT(job.err(), Contains("ddlrun: " + lost + ": "));
    if (is_elastic) CHECK_THAT(job.err(), Contains("generation 1: starting 8 ranks on " + nodes[1]));
    idle.erase(idle.begin(), idle.begin() + kNodes);
  }
  // Three ranks and a spare: without the spare too few would be left.
  HostJob job({"-np", "3", "--max-np", "3", "--min-np", "2", "--spares", "1", e2e::program("elastic_program"),
               "stop1"},
              in_salloc({"-N", "2", "--ntasks-per-node", "2", "--no-kill", "-w", idle[0] + "," + idle[1]}));
  job.job().wait_for("generation 0: rank ", 3);
  cluster.kill_for_good(idle[0]);
  CHECK(job.job().wait() == 0);
  CHECK_THAT(job.err(), Contains("ddlrun: " + idle[0] + ": ") &&
                            Contains("generation 1: going on with 2 ranks on " + idle[1]));
}

}  // namespace
}  // namespace ddl::cluster
