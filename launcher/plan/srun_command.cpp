#include "launcher/plan/srun_command.h"

#include <algorithm>
#include <optional>
#include <set>
#include <span>
#include <string_view>

#include "affinity/output/binding_format.h"
#include "base/text.h"
#include "contract/ddlrun.h"
#include "contract/environment.h"

namespace ddl::launcher {

namespace {

/// A step with one task on each of these nodes, on which the job has the same CPUs and GPUs. It uses all of the
/// job's CPUs and GPUs there, and binds nothing.
std::vector<std::string> step_on(const SlurmJob& job, const std::vector<std::string>& names) {
  const std::string count = std::to_string(names.size());
  std::vector<std::string> words = {
      "srun", "--jobid=" + job.id, "--nodelist=" + join(names, ","), "-N", count, "-n", count};
  const auto own = std::find_if(job.nodes.begin(), job.nodes.end(),
                                [&](const SlurmNode& one) { return one.name == names.front(); });
  if (own != job.nodes.end() && own->cpus > 0)
    words.push_back("--cpus-per-task=" + std::to_string(own->cpus));
  // Without a number, Slurm 22.05 may leave a step without some of the job's GPUs, or refuse it.
  if (own != job.nodes.end() && own->gpus > 0)
    words.push_back("--gpus-per-node=" + std::to_string(own->gpus));
  words.insert(words.end(), {"--cpu-bind=none", "--gpu-bind=none", "--mpi=none", "--overlap", "--no-kill"});
  return words;
}

}  // namespace

std::vector<std::string> srun_command(const SlurmJob& job, const AllocatedNode& node, const std::string& path,
                                      const std::string& nonce) {
  std::vector<std::string> words = step_on(job, {node.name});
  words.insert(words.end(), {"--input=0", "--unbuffered", "--job-name=ddlrun", path,
                             std::string(contract::kAgentOption), nonce});
  return words;
}

std::vector<std::string> srun_group_command(const SlurmJob& job, const std::vector<std::string>& names,
                                            const std::string& path, const std::string& nonce) {
  std::vector<std::string> words = step_on(job, names);
  // The end of one agent must not end the others: the head decides that.
  words.insert(words.end(), {"--ntasks-per-node=1", "--input=all", "--kill-on-bad-exit=0", "--wait=0",
                             "--job-name=ddlrun", path, std::string(contract::kJoiningAgentOption), nonce});
  return words;
}

namespace {

using Names = std::span<const std::string_view>;

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

bool is_one_of(Names names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool begins_with_one_of(Names names, std::string_view name) {
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

namespace {

class SrunLineBuilder {
 public:
  SrunLineBuilder(const JobSpec& spec, const SlurmJob& job, const DryPlan& plan,
                  const Environment& head_environment)
      : spec_(spec),
        job_(job),
        plan_(plan),
        is_in_step_(head_environment.contains("SLURM_STEP_ID")),
        line_{{"srun"}, srun_environment(head_environment, SrunCall::kRanks)} {}

  Result<SrunLine> make(const std::string& mpi_type) {
    if (!mpi_type.empty()) add("--mpi=" + mpi_type);
    // The shell of srun --pty holds CPUs of the job as well, and srun would wait for its end.
    if (is_in_step_) add("--overlap");
    DDL_TRY(size());
    DDL_TRY(binding());
    input_and_output();
    for (const EnvironmentExport& one : spec_.exports) {
      if (one.value) line_.environment[one.name] = *one.value;
    }
    choose_gpus();
    line_.words.insert(line_.words.end(), spec_.command.begin(), spec_.command.end());
    return std::move(line_);
  }

 private:
  void add(std::string word) { line_.words.push_back(std::move(word)); }
  const std::vector<NodeLaunch>& nodes() const { return plan_.launch.nodes; }

  Status size() {
    const std::size_t per_node = nodes().front().ranks.size();
    std::vector<std::string> names;
    for (const NodeLaunch& node : nodes()) {
      names.push_back(name_of(node));
      if (node.ranks.size() != per_node)
        return refuse("srun places the same number of ranks on each node, but " + names.back() +
                      " would have " + counted(static_cast<std::int64_t>(node.ranks.size()), "rank") +
                      " and " + names.front() + " " + std::to_string(per_node) +
                      ": choose another -np, or let ddlrun start them");
    }
    add("--nodes=" + std::to_string(nodes().size()));
    add("--nodelist=" + join(names, ","));
    add("--ntasks=" + std::to_string(nodes().size() * per_node));
    add("--ntasks-per-node=" + std::to_string(per_node));
    add(numbers_by_node(spec_) ? "--distribution=cyclic" : "--distribution=block");
    if (spec_.oversubscribe) add("--overcommit");
    // Without a number, Slurm 22.05 may leave a step without some of the job's GPUs, or refuse it.
    const auto first = std::find_if(job_.nodes.begin(), job_.nodes.end(),
                                    [&](const SlurmNode& node) { return node.name == names.front(); });
    if (first != job_.nodes.end() && first->gpus > 0) add("--gpus-per-node=" + std::to_string(first->gpus));
    return {};
  }

  std::string name_of(const NodeLaunch& node) const {
    return node.node_names[static_cast<std::size_t>(node.node_index)];
  }

  /// CPUs of the job on this node; 0: unknown.
  int cpus_held_on(const std::string& name) const {
    const auto node = std::find_if(job_.nodes.begin(), job_.nodes.end(),
                                   [&](const SlurmNode& one) { return one.name == name; });
    return node == job_.nodes.end() ? 0 : node->cpus;
  }

  /// How many CPUs srun can give each rank without exceeding those of the job; 0: unknown.
  int cpus_per_rank() const {
    int minimum = 0;
    for (const NodeLaunch& node : nodes()) {
      const int each = cpus_held_on(name_of(node)) / static_cast<int>(node.ranks.size());
      if (each == 0) return 0;
      minimum = minimum == 0 ? each : std::min(minimum, each);
    }
    return minimum;
  }

  struct Excess {
    std::string node;
    int ranks = 0;
    int planned = 0;
    int held = 0;
  };
  /// If Slurm confines jobs to their CPUs, an agent sees only those. If not, the plan uses all CPUs of the node,
  /// and Slurm does not report which of them belong to the job.
  std::optional<Excess> excess() const {
    for (std::size_t i = 0; i < nodes().size(); ++i) {
      CpuSet cpus;
      for (const affinity::RankBinding& rank : plan_.bindings[i].plan.ranks) cpus |= rank.cpus;
      const std::string name = name_of(nodes()[i]);
      const int held = cpus_held_on(name);
      if (held > 0 && cpus.count() > held)
        return Excess{name, static_cast<int>(nodes()[i].ranks.size()), cpus.count(), held};
    }
    return std::nullopt;
  }

  Status binding() {
    const auto too_many = excess();
    if (too_many) {
      const std::string reason = too_many->node + ": " + counted(too_many->ranks, "rank") +
                                 " would be bound to " + counted(too_many->planned, "CPU") +
                                 ", but the job holds only " + std::to_string(too_many->held) +
                                 " of these, and Slurm does not report which";
      if (is_binding_asked_for(spec_))
        return refuse(reason +
                      ": leave binding to srun (omit --bind-to and the other options of binding), give each "
                      "rank fewer with --cores-per-rank, or request whole nodes (--exclusive)");
      line_.note = reason + "; srun binds them instead; --exclusive requests whole nodes";
    }
    std::set<std::string> masks;
    std::set<int> cpus;
    for (const NodeBinding& node : plan_.bindings) {
      masks.insert(node.plan.ranks.empty() || too_many ? "" : affinity::as_mask_cpu(node.plan));
      for (const affinity::RankBinding& rank : node.plan.ranks) cpus.insert(rank.cpus.count());
    }
    if (masks.size() > 1)
      return refuse(
          "srun binds the ranks of all nodes in the same way, but these nodes differ: let ddlrun start them, "
          "or add --bind-to none");
    // Since Slurm 22.05 srun ignores the --cpus-per-task of salloc.
    const int each = !masks.begin()->empty() && cpus.size() == 1 ? *cpus.begin() : cpus_per_rank();
    if (each > 0) add("--cpus-per-task=" + std::to_string(each));
    if (!too_many) add("--cpu-bind=" + (masks.begin()->empty() ? "none" : *masks.begin()));
    return {};
  }

  void input_and_output() {
    switch (spec_.stdin_target) {
      case StdinTarget::kRank0: add("--input=0"); break;
      case StdinTarget::kAll: add("--input=all"); break;
      case StdinTarget::kNone: add("--input=none"); break;
    }
    if (spec_.tag_output) add("--label");
    add("--chdir=" + spec_.workdir);
    add("--kill-on-bad-exit=1");
  }

  /// All GPUs of the node stay in each rank's cgroup (--gpu-bind=none), so that they can access each other's
  /// memory. A variable selects each rank's own.
  void choose_gpus() {
    const auto& ranks = plan_.bindings.front().plan.ranks;
    const bool has_gpus = !ranks.empty() && std::none_of(ranks.begin(), ranks.end(),
                                                         [](const auto& rank) { return rank.gpus.empty(); });
    if (!has_gpus) return;
    add("--gpu-bind=none");
    std::vector<std::string> values;
    std::string name;
    for (const affinity::RankBinding& rank : ranks) {
      for (const auto& [variable, value] : binding_environment(rank, rank.gpus, {})) {
        const auto names = visible_device_variables();
        if (std::find(names.begin(), names.end(), variable) == names.end()) continue;
        name = variable;
        values.push_back(shell_quote(value));
      }
    }
    if (values.size() != ranks.size()) return;
    line_.words.insert(line_.words.end(), {"bash", "-c",
                                           "gpus=(" + join(values, " ") + "); export " + name +
                                               "=\"${gpus[SLURM_LOCALID]}\"; exec \"$@\"",
                                           "bash"});
  }

  const JobSpec& spec_;
  const SlurmJob& job_;
  const DryPlan& plan_;
  const bool is_in_step_;
  SrunLine line_;
};

}  // namespace

Result<SrunLine> make_srun_line(const JobSpec& spec, const SlurmJob& job, const DryPlan& plan,
                                const Environment& head_environment, const std::string& mpi_type) {
  return SrunLineBuilder(spec, job, plan, head_environment).make(mpi_type);
}

}  // namespace ddl::launcher
