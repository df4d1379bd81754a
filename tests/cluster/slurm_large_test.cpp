// ddlrun inside a Slurm with more nodes, some of which die.
#include <algorithm>
#include <set>

#include "base/text.h"
#include "cluster/harness/cluster.h"
#include "cluster/harness/host_job.h"
#include "contract/exit_code.h"
#include "support/catch.h"

namespace ddl::cluster {
namespace {

using Catch::Matchers::Contains;
using Words = std::vector<std::string>;

e2e::Command in_salloc(const Words& options) {
  e2e::Command settings;
  settings.argv = {"salloc", "-Q"};
  settings.argv.insert(settings.argv.end(), options.begin(), options.end());
  return settings;
}

std::string said_by(const Words& words) {
  const e2e::Scratch scratch;
  e2e::Command command = as_login(tested_login(), words);
  command.directory = "/home/shared";
  e2e::Job job(scratch, command);
  REQUIRE(job.wait() == 0);
  return job.out();
}

}  // namespace

TEST_CASE("16 nodes have their ranks each", "[slurm_large]") {
  HostJob job({"--no-tag-output", "hostname"}, in_salloc({"-N", "16", "--ntasks-per-node", "2"}));
  CHECK(job.wait() == 0);
  INFO(job.err());
  std::multiset<std::string> hosts;
  for (const std::string_view line : split(trim(job.out()), '\n')) hosts.emplace(line);
  CHECK(hosts.size() == 32);
  for (int node = 1; node <= 16; ++node) CHECK(hosts.count("node" + std::to_string(node)) == 2);

  HostJob fit({"-np", "16", DDL_CLUSTER_EXAMPLE, "--epochs", "20"}, in_salloc({"-N", "16"}));
  CHECK(fit.wait() == 0);
  CHECK_THAT(fit.out(), Contains("16 ranks, "));
}

// Last: Slurm takes its time before it uses such a node again.
TEST_CASE("a node that dies ends the job, which says which it was", "[slurm_lost]") {
  std::vector<std::string> idle;
  const std::string said =
      said_by({"sinfo", "--noheader", "--partition", "main", "--states", "idle", "-N", "-o", "%N"});
  for (const std::string_view name : split(trim(said), '\n')) idle.emplace_back(name);
  REQUIRE(idle.size() >= 4);
  Cluster cluster;
  // One that is reached through the first one, and then a first one.
  for (const std::size_t victim : {std::size_t{2}, std::size_t{0}}) {
    const std::vector<std::string> nodes(idle.end() - 4, idle.end());
    const std::string lost = nodes[victim];
    CAPTURE(lost);
    HostJob job({"sh", "-c", "echo running; exec sleep 1000"},
                in_salloc({"-N", "4", "--ntasks-per-node", "1", "--no-kill", "-w", join(nodes, ",")}));
    job.job().wait_for("running", 4);
    cluster.kill(lost);
    const int status = job.job().wait();
    INFO(job.err());
    CHECK(status == contract::kLostHost);
    CHECK_THAT(job.err(), Contains("ddlrun: " + lost + ": "));
    idle.erase(idle.end() - 4, idle.end());
  }
}

}  // namespace ddl::cluster
