// Jobs whose ranks go on, in a real Slurm that loses nodes.
#include <filesystem>

#include "base/text.h"
#include "cluster/harness/cluster.h"
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

TEST_CASE("a job that has lost the host of ddlrun is requeued by a host that is left, and goes on",
          "[slurm_requeue]") {
  Cluster cluster;
  const JobFolder folder;
  const std::string ddlrun = e2e::ddlrun({}).argv.front();
  const std::string script = folder.write(
      "job.sh", "#!/bin/bash\nexec " + ddlrun + " --min-np 1 --state-dir state --state-interval 100 " +
                    (std::filesystem::path(ddlrun).parent_path() / "elastic_fit").string() +
                    " $((SLURM_RESTART_COUNT ? 10 : 100000000))\n");
  const std::string job =
      folder.sbatch("out", {"-N", "2", "--ntasks-per-node", "2", "--no-kill", "--open-mode=append"}, script);
  folder.await_lines("out", "process.*from.step.0$", 4);
  folder.checked_output(
      {"timeout", "30", "sh", "-c", "until [ -e state/ddl-state.bin ]; do sleep 0.05; done"});
  const std::string host = field_of(folder, job, "BatchHost");
  cluster.kill(host);
  // When Slurm has noticed that the node is down. It may then start the job at once, or in two minutes.
  folder.checked_output({"timeout", "60", "bash", "-c",
                         "while shown=$(squeue -h -o %r -j " + job +
                             " 2>/dev/null) && [ -n \"$shown\" ]; do "
                             "[ \"$shown\" != BeginTime ] || scontrol update JobId=" +
                             job + " StartTime=now; sleep 0.1; done"});
  INFO(folder.output("out"));
  CHECK(field_of(folder, job, "Restarts") == "1");
  CHECK_THAT(folder.output("out"), Contains(" steps the loss is "));
  CHECK_THAT(folder.output("out"), !Contains("generation 1"));
}

}  // namespace
}  // namespace ddl::cluster
