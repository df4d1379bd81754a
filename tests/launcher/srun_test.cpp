// The srun that starts an agent: its arguments, its environment, and the sentences about its failures.
#include "base/text.h"
#include "launcher/fleet/step_starter.h"
#include "launcher/scheduler/slurm.h"
#include "support/catch.h"

using ddl::Environment;
using namespace ddl::launcher;

namespace {

std::string sentence(const std::string& errors, std::optional<int> status = 1 << 8) {
  return describe_step_failure(slurm(), {status, "", errors}).message();
}

}  // namespace

TEST_CASE("the agent gets all CPUs and GPUs of the job on its node, and Slurm binds nothing") {
  SchedulerJob job;
  job.id = "4711";
  job.nodes = {{"node3", 128, 1, 8}, {"node4", 0, 1, 0}};
  const auto command = [&](const char* node, const char* path) {
    return ddl::join(slurm().agent_command(job, {node}, Scheduler::AgentInput::kLink, path, "abc"), " ");
  };
  CHECK(
      command("node3", "/opt/ddl run") ==
      "srun --jobid=4711 --nodelist=node3 -N 1 -n 1 --cpus-per-task=128 --gpus-per-node=8 --cpu-bind=none "
      "--gpu-bind=none --mpi=none --overlap --no-kill --input=0 --unbuffered --job-name=ddlrun /opt/ddl run "
      "--agent abc");
  CHECK(command("node4", "x").find("-n 1 --cpu-bind=none") != std::string::npos);
}

TEST_CASE("a group is one step on all of its nodes, whose agents read a Join from standard input") {
  SchedulerJob job;
  job.id = "4711";
  job.nodes = {{"node1", 8, 1, 0}, {"node2", 8, 1, 0}, {"node3", 8, 1, 0}};
  CHECK(
      ddl::join(
          slurm().agent_command(job, {"node2", "node3"}, Scheduler::AgentInput::kJoin, "/opt/ddlrun", "abc"),
          " ") ==
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

namespace {

/// All input variables that srun(1) of Slurm 22.05 and 26.05 names, and those of its table of options.
constexpr std::string_view kInputVariables =
    "PMI_FANOUT PMI_FANOUT_OFF_HOST PMI_TIME SLURMD_DEBUG SLURM_ACCOUNT SLURM_ACCTG_FREQ SLURM_BCAST "
    "SLURM_BCAST_EXCLUDE SLURM_BURST_BUFFER SLURM_CLUSTERS SLURM_CLUSTER_CONSTRAINT SLURM_COMPRESS "
    "SLURM_CONF "
    "SLURM_CONSOLIDATE_SEGMENTS SLURM_CONSTRAINT SLURM_CORE_SPEC SLURM_CPUS_PER_GPU SLURM_CPUS_PER_TASK "
    "SLURM_CPU_BIND SLURM_CPU_FREQ_REQ SLURM_DEBUG SLURM_DEBUG_FLAGS SLURM_DELAY_BOOT SLURM_DEPENDENCY "
    "SLURM_DISABLE_STATUS SLURM_DISTRIBUTION SLURM_DIST_PLANESIZE SLURM_EPILOG SLURM_EXACT SLURM_EXCLUSIVE "
    "SLURM_EXIT_ERROR SLURM_EXIT_IMMEDIATE SLURM_EXPORT_ENV SLURM_EXTERNAL_LAUNCHER SLURM_GPUS "
    "SLURM_GPUS_PER_NODE SLURM_GPUS_PER_SOCKET SLURM_GPUS_PER_TASK SLURM_GPU_BIND SLURM_GPU_FREQ SLURM_GRES "
    "SLURM_GRES_FLAGS SLURM_HINT SLURM_IMMEDIATE SLURM_JOB_ID SLURM_JOB_NAME SLURM_JOB_NODELIST "
    "SLURM_JOB_NUM_NODES SLURM_KILL_BAD_EXIT SLURM_LABELIO SLURM_MEM_BIND SLURM_MEM_PER_CPU "
    "SLURM_MEM_PER_GPU "
    "SLURM_MEM_PER_NODE SLURM_MPI_TYPE SLURM_NCORES_PER_SOCKET SLURM_NETWORK SLURM_NNODES SLURM_NO_KILL "
    "SLURM_NPROCS SLURM_NSOCKETS_PER_NODE SLURM_NTASKS SLURM_NTASKS_PER_CORE SLURM_NTASKS_PER_GPU "
    "SLURM_NTASKS_PER_NODE SLURM_NTASKS_PER_SOCKET SLURM_NTASKS_PER_TRES SLURM_OOMKILLSTEP "
    "SLURM_OOM_KILL_STEP "
    "SLURM_OPEN_MODE SLURM_OVERCOMMIT SLURM_OVERLAP SLURM_PARTITION SLURM_PMI_KVS_NO_DUP_KEYS SLURM_POWER "
    "SLURM_PROFILE SLURM_PROLOG SLURM_QOS SLURM_REMOTE_CWD SLURM_REQ_SWITCH SLURM_RESERVATION "
    "SLURM_RESV_PORTS "
    "SLURM_SEND_LIBS SLURM_SIGNAL SLURM_SPREAD_JOB SLURM_SPREAD_SEGMENTS SLURM_SRUN_MULTI "
    "SLURM_SRUN_REDUCE_TASK_EXIT_MSG SLURM_STDERRMODE SLURM_STDINMODE SLURM_STDOUTMODE SLURM_STEP_GRES "
    "SLURM_STEP_KILLED_MSG_NODE_ID SLURM_TASK_EPILOG SLURM_TASK_PROLOG SLURM_TEST_EXEC SLURM_THREADS "
    "SLURM_THREADS_PER_CORE SLURM_THREAD_SPEC SLURM_TIMELIMIT SLURM_TRES_BIND SLURM_TRES_PER_TASK "
    "SLURM_UMASK "
    "SLURM_UNBUFFEREDIO SLURM_USE_MIN_NODES SLURM_WAIT SLURM_WAIT4SWITCH SLURM_WCKEY SLURM_WORKING_DIR "
    "SRUN_CONTAINER SRUN_CONTAINER_ID SRUN_CPUS_PER_TASK SRUN_ERROR SRUN_EXPORT_ENV SRUN_INPUT SRUN_OUTPUT "
    "SRUN_RUNTIME SRUN_SEGMENT_SIZE";

/// The names that a call of srun gets, of all input variables and the allocation's own.
std::string passed_on(SrunCall call) {
  Environment own = {{"PATH", "/usr/bin"},
                     {"SLURM_CPUS_ON_NODE", "8"},
                     {"SLURM_JOB_CPUS_PER_NODE", "8(x2)"},
                     {"SLURM_NODELIST", "node[1-2]"},
                     {"SLURM_WORKING_CLUSTER", "c"}};
  for (const std::string_view name : ddl::split(kInputVariables, ' ')) own.emplace(name, "1");
  std::vector<std::string> names;
  for (const auto& [name, value] : srun_environment(own, call)) names.push_back(name);
  return ddl::join(names, " ");
}

}  // namespace

TEST_CASE(
    "of srun's input variables the agents' step gets those that say which job it is, and of the hardware") {
  CHECK(
      passed_on(SrunCall::kAgents) ==
      "PATH PMI_FANOUT PMI_FANOUT_OFF_HOST PMI_TIME SLURMD_DEBUG SLURM_ACCTG_FREQ SLURM_CLUSTERS SLURM_CONF "
      "SLURM_CPUS_ON_NODE SLURM_CPU_FREQ_REQ SLURM_DEBUG SLURM_DEBUG_FLAGS SLURM_GPU_FREQ "
      "SLURM_JOB_CPUS_PER_NODE "
      "SLURM_JOB_ID SLURM_JOB_NAME SLURM_JOB_NODELIST SLURM_JOB_NUM_NODES SLURM_NETWORK SLURM_NNODES "
      "SLURM_NODELIST SLURM_OVERLAP SLURM_PMI_KVS_NO_DUP_KEYS SLURM_POWER SLURM_PROFILE SLURM_UMASK "
      "SLURM_WCKEY "
      "SLURM_WORKING_CLUSTER");
}

TEST_CASE("srun's input variables for a step reach the ranks of --launcher srun, those for tasks mpirun") {
  const Environment own = {{"SLURM_NTASKS", "4"},        {"SLURM_CPUS_PER_TASK", "2"},
                           {"SLURM_LABELIO", "1"},       {"SLURM_SRUN_MULTI", "1"},
                           {"SLURM_STDOUTMODE", "FILE"}, {"SLURM_MEM_PER_NODE", "100"},
                           {"SLURM_JOB_ID", "1"}};
  CHECK(srun_environment(own, SrunCall::kRanks) ==
        Environment{{"SLURM_STDOUTMODE", "FILE"}, {"SLURM_MEM_PER_NODE", "100"}, {"SLURM_JOB_ID", "1"}});
  CHECK(srun_environment(own, SrunCall::kOfMpirun) ==
        Environment{{"SLURM_NTASKS", "4"}, {"SLURM_CPUS_PER_TASK", "2"}, {"SLURM_JOB_ID", "1"}});
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
