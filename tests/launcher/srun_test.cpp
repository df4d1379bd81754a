// The srun that starts an agent: its arguments, its environment, and the sentences about its failures.
#include "launcher/fleet/srun.h"
#include "base/text.h"
#include "launcher/plan/srun_command.h"
#include "support/catch.h"

using ddl::Environment;
using namespace ddl::launcher;

namespace {

std::string sentence(const std::string& errors, std::optional<int> status = 1 << 8) {
  return describe_srun_failure({"/opt/ddlrun", status, "", errors}).sentence;
}

}  // namespace

TEST_CASE("the agent gets all CPUs and GPUs of the job on its node, and Slurm binds nothing") {
  SlurmJob job;
  job.id = "4711";
  job.nodes = {{"node3", 128, 1, 8}, {"node4", 0, 1, 0}};
  AllocatedNode node;
  node.name = "node3";
  CHECK(
      ddl::join(srun_command(job, node, "/opt/ddl run", "abc"), " ") ==
      "srun --jobid=4711 --nodelist=node3 -N 1 -n 1 --cpus-per-task=128 --gpus-per-node=8 --cpu-bind=none "
      "--gpu-bind=none --mpi=none --overlap --no-kill --input=0 --unbuffered --job-name=ddlrun /opt/ddl run "
      "--agent abc");
  node.name = "node4";
  CHECK(ddl::join(srun_command(job, node, "x", "abc"), " ").find("-n 1 --cpu-bind=none") !=
        std::string::npos);
}

TEST_CASE("a group is one step on all of its nodes, whose agents read a Join from standard input") {
  SlurmJob job;
  job.id = "4711";
  job.nodes = {{"node1", 8, 1, 0}, {"node2", 8, 1, 0}, {"node3", 8, 1, 0}};
  CHECK(
      ddl::join(srun_group_command(job, {"node2", "node3"}, "/opt/ddlrun", "abc"), " ") ==
      "srun --jobid=4711 --nodelist=node2,node3 -N 2 -n 2 --cpus-per-task=8 --cpu-bind=none --gpu-bind=none "
      "--mpi=none --overlap --no-kill --ntasks-per-node=1 --input=all --kill-on-bad-exit=0 --wait=0 "
      "--job-name=ddlrun /opt/ddlrun --joining-agent abc");
}

TEST_CASE("a shared library that is missing on a node is not reported as a missing ddlrun") {
  CHECK_THAT(
      sentence("/opt/ddlrun: error while loading shared libraries: libpmix.so.2: cannot open shared object "
               "file: No such file or directory\nsrun: error: node3: task 0: Exited with exit code 127\n"),
      Catch::Contains("libpmix.so.2") && Catch::Contains("a shared library that ddlrun needs is missing") &&
          !Catch::Contains("ddlrun was not found there"));
}

TEST_CASE("options for the user's own tasks are not options of the agent's step") {
  const Environment kept = srun_environment({{"SLURM_JOB_ID", "1"},
                                             {"SLURM_NTASKS", "4"},
                                             {"SLURM_NTASKS_PER_NODE", "2"},
                                             {"SLURM_NPROCS", "4"},
                                             {"SLURM_CPUS_PER_TASK", "2"},
                                             {"SLURM_GPUS", "8"},
                                             {"SLURM_GPUS_PER_TASK", "1"},
                                             {"SLURM_TRES_PER_TASK", "cpu:2"},
                                             {"SLURM_CPU_BIND_TYPE", "map_cpu:"},
                                             {"SLURM_MEM_BIND", "local"},
                                             {"SLURM_DISTRIBUTION", "block"},
                                             {"SLURM_CONF", "/etc/slurm/slurm.conf"},
                                             {"PATH", "/usr/bin"}});
  std::vector<std::string> names;
  for (const auto& [name, value] : kept) names.push_back(name);
  CHECK(ddl::join(names, " ") == "PATH SLURM_CONF SLURM_JOB_ID");
}

TEST_CASE("srun's own message is quoted, with what to do") {
  CHECK(
      sentence("srun: error: Unable to create step for job 5: Insufficient GRES available in allocation\n") ==
      "srun started no agent (srun: error: Unable to create step for job 5: Insufficient GRES available in "
      "allocation); the job has other GPUs there than its environment says; request them with "
      "--gpus-per-node");
  CHECK_THAT(sentence("slurmstepd: error: execve(): /opt/ddlrun: No such file or directory\n"),
             Catch::EndsWith("give its path with --remote-path"));
  CHECK_THAT(
      sentence("slurmstepd: error: execve(): /opt/ddlrun: Exec format error\n"),
      Catch::EndsWith("; ddlrun was built for another kind of machine; install one for this node and name it "
                      "with --remote-path"));
  CHECK_THAT(sentence("srun: error: Unable to confirm allocation for job 5: Invalid job id specified\n"),
             Catch::EndsWith("request a new one with salloc or sbatch"));
  CHECK(sentence("") == "srun started no agent and ended with 1");
  CHECK_THAT(sentence("", 9), Catch::Contains("killed by SIGKILL"));
  CHECK(sentence("", std::nullopt) == "srun closed the connection but is still running");
}
