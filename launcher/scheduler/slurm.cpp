#include "launcher/scheduler/slurm.h"

#include <algorithm>
#include <array>
#include <chrono>

#include "base/command_output.h"
#include "base/text.h"

namespace ddl::launcher {
namespace {

std::string list_of(const std::vector<int>& numbers) {
  std::vector<std::string> texts;
  for (const int number : numbers) texts.push_back(std::to_string(number));
  return join(texts, ",");
}

struct Advice {
  std::string_view pattern;
  std::string_view advice;
};

// In the order in which they are searched for: srun's first message is often a consequence of a later one.
constexpr std::array kAdvice{
    Advice{"error while loading shared libraries",
           "a shared library that ddlrun needs is missing there; install it, or name another ddlrun with "
           "--remote-path"},
    Advice{"Exec format error",
           "ddlrun was built for another kind of machine; install one for this node and name it with "
           "--remote-path"},
    Advice{"No such file or directory", "ddlrun was not found there; give its path with --remote-path"},
    Advice{"Permission denied", "ddlrun may not be executed there; name another one with --remote-path"},
    Advice{"Job/step already completing or completed",
           "the job has ended; request a new one with salloc or sbatch"},
    Advice{"Invalid job id", "the job has ended; request a new one with salloc or sbatch"},
    Advice{"Expired or invalid job", "the job has ended; request a new one with salloc or sbatch"},
    Advice{"Insufficient GRES",
           "the job has other GPUs there than its environment says; request them with --gpus-per-node"},
    Advice{"Invalid generic resource",
           "the job has other GPUs there than its environment says; request them with --gpus-per-node"},
    Advice{"Unable to contact slurm controller", "Slurm's controller does not answer; try again later"},
};

class Slurm : public Scheduler {
 public:
  std::string name() const override { return "Slurm"; }
  std::string starter() const override { return "srun"; }

  std::string job_id(const Environment& own) const override { return value_of(own, "SLURM_JOB_ID"); }
  Result<std::optional<SchedulerJob>> find_job(const Environment& own) const override {
    return slurm_job(own);
  }
  Status check_single_task(const Environment& own) const override { return check_single_slurm_task(own); }
  std::string node_name(const Environment& own) const override { return value_of(own, "SLURMD_NODENAME"); }

  // The variables that srun would set, because programs read them.

  Environment step_variables(const SchedulerStep& step) const override {
    std::vector<int> tasks;
    int num_tasks = 0;
    for (const std::vector<int>& ranks : step.node_ranks) {
      tasks.push_back(std::ssize(ranks));
      num_tasks += tasks.back();
    }
    const std::string num_ranks = std::to_string(num_tasks);
    const std::string nodes = std::to_string(step.node_names.size());
    const std::string list = join(step.node_names, ","), per_node = list_of(tasks);
    Environment environment = {{"SLURM_NTASKS", num_ranks},
                               {"SLURM_NPROCS", num_ranks},
                               {"SLURM_NNODES", nodes},
                               {"SLURM_NODELIST", list},
                               {"SLURM_TASKS_PER_NODE", per_node},
                               {"SLURM_STEP_NUM_TASKS", num_ranks},
                               {"SLURM_STEP_NUM_NODES", nodes},
                               {"SLURM_STEP_NODELIST", list},
                               {"SLURM_STEP_TASKS_PER_NODE", per_node}};
    const bool is_even =
        std::all_of(tasks.begin(), tasks.end(), [&](int one) { return one == tasks.front(); });
    if (is_even) environment["SLURM_NTASKS_PER_NODE"] = std::to_string(tasks.front());
    return environment;
  }

  Environment rank_variables(const SchedulerStep& step, int node, int local_rank) const override {
    const std::vector<int>& ranks = step.node_ranks[node];
    return {{"SLURM_PROCID", std::to_string(ranks[local_rank])},
            {"SLURM_LOCALID", std::to_string(local_rank)},
            {"SLURM_NODEID", std::to_string(node)},
            {"SLURM_GTIDS", list_of(ranks)}};
  }

  std::vector<std::string> node_variables() const override {
    return {"SLURM_STEP_ID",
            "SLURM_STEPID",
            "SLURMD_NODENAME",
            "SLURM_CPUS_ON_NODE",
            "SLURM_GPUS_ON_NODE",
            "SLURM_STEP_GPUS",
            "SLURM_JOB_GPUS",
            "SLURM_LAUNCH_NODE_IPADDR",
            "SLURM_SRUN_COMM_HOST",
            "SLURM_TOPOLOGY_ADDR",
            "SLURM_TOPOLOGY_ADDR_PATTERN"};
  }

  bool describes_task(std::string_view variable) const override {
    constexpr std::array<std::string_view, 16> kPrefixes = {
        "SLURM_PROCID",         "SLURM_LOCALID",      "SLURM_NODEID",   "SLURM_GTIDS",
        "SLURM_NTASKS",         "SLURM_NPROCS",       "SLURM_STEP",     "SLURM_TASK_PID",
        "SLURM_TASKS_PER_NODE", "SLURM_DISTRIBUTION", "SLURM_CPU_BIND", "SLURM_MEM_BIND",
        "SLURM_GPU_BIND",       "SLURM_PMI",          "SLURM_MPI_TYPE", "SLURM_PTY_"};
    return std::any_of(kPrefixes.begin(), kPrefixes.end(),
                       [&](auto prefix) { return variable.starts_with(prefix); });
  }
  bool selects_gpus() const override { return true; }

  std::vector<std::string> agent_command(const SchedulerJob& job, const std::vector<std::string>& names,
                                         AgentInput input, const std::string& path,
                                         const std::string& nonce) const override {
    const std::string count = std::to_string(names.size());
    std::vector<std::string> words = {
        "srun", "--jobid=" + job.id, "--nodelist=" + join(names, ","), "-N", count, "-n", count};
    const SchedulerNode* const node = find_node(job, names.front());
    if (node && node->cpus > 0) words.push_back("--cpus-per-task=" + std::to_string(node->cpus));
    // Without a number, Slurm 22.05 may leave a step without some of the job's GPUs, or refuse it.
    if (node && node->gpus > 0) words.push_back("--gpus-per-node=" + std::to_string(node->gpus));
    words.insert(words.end(), {"--cpu-bind=none", "--gpu-bind=none", "--mpi=none", "--overlap", "--no-kill"});
    if (input == AgentInput::kLink) {
      words.insert(words.end(), {"--input=0", "--unbuffered"});
    } else {
      // The end of one agent must not end the others: the head decides that.
      words.insert(words.end(), {"--ntasks-per-node=1", "--input=all", "--kill-on-bad-exit=0", "--wait=0"});
    }
    words.insert(words.end(), {"--job-name=ddlrun", path, agent_option(input), nonce});
    return words;
  }

  Environment agent_environment(const Environment& own) const override {
    return srun_environment(own, SrunCall::kAgents);
  }

  Environment mpirun_environment(const Environment& own) const override {
    return srun_environment(own, SrunCall::kOfMpirun);
  }

  Environment mpirun_variables(const SchedulerJob& job, const Environment& own) const override {
    if (!own.contains("SLURM_STEP_ID")) return {};
    std::vector<int> tasks;
    for (const SchedulerNode& node : job.nodes)
      tasks.push_back(job.num_tasks ? node.tasks : std::max(node.tasks, node.cpus));
    return {{"SLURM_TASKS_PER_NODE", list_of(tasks)},
            {"SLURM_NNODES", std::to_string(tasks.size())},
            {"SLURM_OVERLAP", "1"}};
  }

  std::string command_on_part_of_node() const override {
    return "srun --exact -N 1 -n 1 -c CPUS --gpus GPUS ddlrun --launcher local ...";
  }

  std::string advice(std::string_view errors) const override {
    for (const Advice& one : kAdvice) {
      if (errors.find(one.pattern) != std::string_view::npos) return std::string(one.advice);
    }
    return "";
  }

  bool is_ending(const std::string& job_id, const Environment& own) const override {
    constexpr std::chrono::seconds kPatience{5};
    // By these a user filters and formats what squeue prints.
    Environment environment = own;
    std::erase_if(environment, [](const auto& variable) { return variable.first.starts_with("SQUEUE_"); });
    const auto output =
        command_output({"squeue", "--noheader", "--states=all", "--format=%T", "--jobs=" + job_id}, "",
                       kPatience, environment);
    return output && is_ended_by_slurm(trim(output->out));
  }

  Result<bool> may_requeue(const std::string& job_id, const Environment& own) const override {
    DDL_ASSIGN(text, scontrol({"show", "job", "--oneliner", job_id}, own));
    const auto words = split(trim(text), ' ');
    return std::all_of(kRequeueable.begin(), kRequeueable.end(), [&](std::string_view wanted) {
      return std::find(words.begin(), words.end(), wanted) != words.end();
    });
  }

  std::string node_port() const override { return "6818"; }  // slurmd's

  Status requeue(const std::string& job_id, const Environment& own) const override {
    const auto done = scontrol({"requeue", job_id}, own);
    return done ? Status() : fail(done.error());
  }

 private:
  static constexpr std::array<std::string_view, 3> kRequeueable = {"JobState=RUNNING", "BatchFlag=1",
                                                                   "Requeue=1"};

  /// What it prints.
  static Result<std::string> scontrol(std::vector<std::string> words, const Environment& own) {
    // It waits by itself for a controller that is busy or starts anew.
    constexpr std::chrono::seconds kPatience{20};
    words.insert(words.begin(), "scontrol");
    DDL_ASSIGN(output, command_output(words, "", kPatience, own));
    if (output.wait_status != 0) return fail(ErrorCode::kUnavailable, "scontrol " + how_it_failed(output));
    return std::move(output.out);
  }
};

}  // namespace

const Scheduler& slurm() {
  static const Slurm kSlurm;
  return kSlurm;
}

bool is_ended_by_slurm(std::string_view state) {
  // A job that was cancelled is COMPLETING until its last process has ended.
  constexpr std::array<std::string_view, 6> kStates = {"CANCELLED", "COMPLETING", "COMPLETED",
                                                       "TIMEOUT",   "PREEMPTED",  "DEADLINE"};
  return std::find(kStates.begin(), kStates.end(), state) != kStates.end();
}

}  // namespace ddl::launcher
