#include <algorithm>
#include <span>
#include <string_view>

#include "launcher/scheduler/slurm.h"

namespace ddl::launcher {
namespace {

// The input variables of srun, as of Slurm 22.05 to 26.05: srun(1), INPUT ENVIRONMENT VARIABLES, and those that only
// its table of options has (src/srun/opt.c). docs/guide/slurm.md names those that are in none of these lists.

/// Beginnings of the names of those that lay out, number, bind and equip tasks: ddlrun gives srun its own plan, but
/// mpirun counts by them how many ranks a node takes.
constexpr std::string_view kOfTasks[] = {"SLURM_NTASKS",
                                         "SLURM_NPROCS",
                                         "SLURM_TASKS_PER_NODE",
                                         "SLURM_CPUS_PER_",
                                         "SRUN_CPUS_PER_TASK",
                                         "SLURM_GPU_BIND",
                                         "SLURM_TRES_",
                                         "SLURM_CPU_BIND",
                                         "SLURM_MEM_BIND",
                                         "SLURM_DIST",
                                         "SLURM_HINT",
                                         "SLURM_THREADS",
                                         "SLURM_GPUS",
                                         "SLURM_EXACT",
                                         "SLURM_EXCLUSIVE",
                                         "SLURM_MPI_TYPE",
                                         "SLURM_NCORES_PER_SOCKET",
                                         "SLURM_NSOCKETS_PER_NODE",
                                         "SLURM_OVERCOMMIT",
                                         "SLURM_HOSTFILE",
                                         "SLURM_ARBITRARY_NODELIST"};

/// Those that decide what a task is: another program, environment, directory or streams. ddlrun has options for that.
constexpr std::string_view kOfProgram[] = {"SLURM_SRUN_MULTI", "SLURM_LABELIO",     "SLURM_STDINMODE",
                                           "SRUN_INPUT",       "SLURM_EXPORT_ENV",  "SRUN_EXPORT_ENV",
                                           "SLURM_REMOTE_CWD", "SLURM_WORKING_DIR", "SLURM_KILL_BAD_EXIT"};

/// Those of the step. The ranks of --launcher srun are what they are meant for; agents and mpirun's daemons need all
/// that the job has, for as long as the job lasts, and their standard output.
constexpr std::string_view kOfStep[] = {
    // What the step may use.
    "SLURM_ACCOUNT", "SLURM_PARTITION", "SLURM_QOS", "SLURM_RESERVATION", "SLURM_MEM_PER_CPU",
    "SLURM_MEM_PER_GPU", "SLURM_MEM_PER_NODE", "SLURM_GRES", "SLURM_STEP_GRES", "SLURM_GRES_FLAGS",
    "SLURM_CORE_SPEC", "SLURM_THREAD_SPEC", "SLURM_RESV_PORTS", "SLURM_BURST_BUFFER",
    // Where and when.
    "SLURM_CONSTRAINT", "SLURM_CLUSTER_CONSTRAINT", "SLURM_REQ_SWITCH", "SLURM_WAIT4SWITCH",
    "SLURM_SPREAD_JOB", "SLURM_SPREAD_SEGMENTS", "SLURM_CONSOLIDATE_SEGMENTS", "SRUN_SEGMENT_SIZE",
    "SLURM_USE_MIN_NODES", "SLURM_DEPENDENCY", "SLURM_DELAY_BOOT", "SLURM_IMMEDIATE", "SLURM_TIMELIMIT",
    "SLURM_SIGNAL",
    // How its program is started.
    "SLURM_BCAST", "SLURM_BCAST_EXCLUDE", "SLURM_SEND_LIBS", "SLURM_COMPRESS", "SLURM_TEST_EXEC",
    "SRUN_CONTAINER", "SRUN_CONTAINER_ID", "SRUN_RUNTIME", "SLURM_EXTERNAL_LAUNCHER", "SLURM_PROLOG",
    "SLURM_EPILOG", "SLURM_TASK_PROLOG", "SLURM_TASK_EPILOG",
    // Its output, and its end.
    "SLURM_STDOUTMODE", "SLURM_STDERRMODE", "SRUN_OUTPUT", "SRUN_ERROR", "SLURM_OPEN_MODE",
    "SLURM_UNBUFFEREDIO", "SLURM_WAIT", "SLURM_NO_KILL", "SLURM_OOM_KILL_STEP", "SLURM_OOMKILLSTEP",
    "SLURM_DISABLE_STATUS", "SLURM_EXIT_ERROR", "SLURM_EXIT_IMMEDIATE", "SLURM_SRUN_REDUCE_TASK_EXIT_MSG",
    "SLURM_STEP_KILLED_MSG_NODE_ID"};

bool is_one_of(std::span<const std::string_view> names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool begins_with_one_of(std::span<const std::string_view> names, std::string_view name) {
  return std::any_of(names.begin(), names.end(), [name](auto prefix) { return name.starts_with(prefix); });
}

}  // namespace

Environment srun_environment(const Environment& own, SrunCall call) {
  Environment environment = own;
  std::erase_if(environment, [call](const auto& variable) {
    const std::string_view name = variable.first;
    return (call != SrunCall::kOfMpirun && begins_with_one_of(kOfTasks, name)) ||
           is_one_of(kOfProgram, name) || (call != SrunCall::kRanks && is_one_of(kOfStep, name));
  });
  return environment;
}

}  // namespace ddl::launcher
