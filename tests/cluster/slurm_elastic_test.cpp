// Jobs whose ranks go on, in a real Slurm that loses nodes.
#include <filesystem>

#include "base/deadline.h"
#include "base/text.h"
#include "cluster/harness/cluster.h"
#include "cluster/harness/host_processes.h"
#include "cluster/harness/job_folder.h"
#include "support/catch.h"

namespace ddl::cluster {
namespace {

using Catch::Matchers::Contains;

/// The value of a field that scontrol shows of a job: "BatchHost".
std::string field_of(const JobFolder& folder, const std::string& job, const std::string& name) {
  const std::string shown = folder.checked_output({"scontrol", "show", "job", "--oneliner", job});
  for (const std::string_view word : split(shown, ' ')) {
    if (word.starts_with(name + "=")) return std::string(word.substr(name.size() + 1));
  }
  return "";
}

/// A job of two nodes that has saved its state. It does not end by itself before it is requeued.
std::string begin_job(const JobFolder& folder) {
  const std::string ddlrun = e2e::ddlrun({}).argv.front();
  const std::string script = folder.write(
      "job.sh", "#!/bin/bash\nexec " + ddlrun + " --min-np 1 --state-dir state --state-interval 1 " +
                    (std::filesystem::path(ddlrun).parent_path() / "elastic_fit").string() +
                    " $((SLURM_RESTART_COUNT ? 10 : 100000000))\n");
  std::string job =
      folder.sbatch("out", {"-N", "2", "--ntasks-per-node", "2", "--no-kill", "--open-mode=append"}, script);
  folder.await_lines("out", "process.*from.step.0$", 4);
  folder.await_file("state/ddl-state.bin");
  return job;
}

TEST_CASE("a host that was cut off from ddlrun and from Slurm for a moment does not have the job requeued",
          "[slurm_requeue]") {
  Cluster cluster;
  const JobFolder folder;
  const Before before;
  const std::string job = begin_job(folder);
  const std::string head = field_of(folder, job, "BatchHost");
  const auto is_agent = [&](const HostProcess& one) { return one.name == "ddl-agent" && one.host != head; };
  const std::vector<HostProcess> agents = before.new_processes(is_agent);
  REQUIRE(agents.size() == 1);
  cluster.partition(agents.front().host);
  folder.await_lines("out", "generation.1:.rank", 2);
  cluster.heal(agents.front().host);
  CHECK(before
            .wait_until_none_left([&](const HostProcess& one) { return one.pid == agents.front().pid; },
                                  Deadline::after(std::chrono::seconds(40)))
            .empty());
  CHECK(field_of(folder, job, "JobState") == "RUNNING");
  CHECK(field_of(folder, job, "Restarts") == "0");
  folder.checked_output({"scancel", job});
  folder.await({job});
}

// The last one on this cluster, whose Slurm has a node less afterwards.
TEST_CASE("a job that has lost the host of ddlrun is requeued by a host that is left, and goes on",
          "[slurm_requeue]") {
  Cluster cluster;
  const JobFolder folder;
  const std::string job = begin_job(folder);
  const std::string host = field_of(folder, job, "BatchHost");
  cluster.kill_for_good(host);
  folder.await_run_without_lost_node(job);
  INFO(folder.output("out"));
  CHECK(field_of(folder, job, "Restarts") == "1");
  CHECK_THAT(folder.output("out"), Contains(" steps the loss is "));
  CHECK_THAT(folder.output("out"), !Contains("generation 1"));
}

}  // namespace
}  // namespace ddl::cluster
