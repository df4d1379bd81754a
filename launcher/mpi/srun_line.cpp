#include "launcher/mpi/srun_line.h"

#include <algorithm>
#include <optional>
#include <set>

#include "affinity/output/binding_format.h"
#include "base/text.h"
#include "contract/environment.h"
#include "launcher/scheduler/slurm.h"

namespace ddl::launcher {
namespace {

class SrunLineBuilder {
 public:
  SrunLineBuilder(const JobSpec& spec, const SchedulerJob& job, const DryPlan& plan,
                  const Environment& head_environment)
      : spec_(spec),
        job_(job),
        plan_(plan),
        is_in_step_(head_environment.contains("SLURM_STEP_ID")),
        line_{{"srun"}, srun_environment(head_environment, SrunCall::kRanks)} {}

  Result<SrunLine> make(const std::string& mpi_type, const std::vector<std::string>& more_options) {
    if (!mpi_type.empty()) add("--mpi=" + mpi_type);
    // The shell of srun --pty holds CPUs of the job as well, and srun would wait for its end.
    if (is_in_step_) add("--overlap");
    DDL_TRY(size());
    DDL_TRY(binding());
    input_and_output();
    for (const EnvironmentExport& one : spec_.exports) {
      if (one.value) line_.environment[one.name] = *one.value;
    }
    if (spec_.as_horovod) DDL_TRY(find_horovod());
    const std::vector<std::string> wrapper = choose_gpus();
    for (const auto& words : {more_options, wrapper, spec_.command})
      line_.words.insert(line_.words.end(), words.begin(), words.end());
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
                      " would have " + counted(node.ranks.size(), "rank") + " and " + names.front() + " " +
                      std::to_string(per_node) + ": choose another -np, or let ddlrun start them");
    }
    add("--nodes=" + std::to_string(nodes().size()));
    add("--nodelist=" + join(names, ","));
    add("--ntasks=" + std::to_string(nodes().size() * per_node));
    add("--ntasks-per-node=" + std::to_string(per_node));
    add(numbers_by_node(spec_) ? "--distribution=cyclic" : "--distribution=block");
    if (spec_.oversubscribe) add("--overcommit");
    // Without a number, Slurm 22.05 may leave a step without some of the job's GPUs, or refuse it.
    const SchedulerNode* const first = find_node(job_, names.front());
    if (first && first->gpus > 0) add("--gpus-per-node=" + std::to_string(first->gpus));
    return {};
  }

  std::string name_of(const NodeLaunch& node) const { return plan_.launch.job.node_names[node.node_index]; }

  /// CPUs of the job on this node; 0: unknown.
  int cpus_held_on(const std::string& name) const {
    const SchedulerNode* const node = find_node(job_, name);
    return node ? node->cpus : 0;
  }

  /// How many CPUs srun can give each rank without exceeding those of the job; 0: unknown.
  int cpus_per_rank() const {
    int minimum = 0;
    for (const NodeLaunch& node : nodes()) {
      const int each = cpus_held_on(name_of(node)) / std::ssize(node.ranks);
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

  /// The folder of the package horovod, which the plan puts first into PYTHONPATH, and the libddl beside ddlrun.
  Status find_horovod() {
    const NodeLaunch& first = nodes().front();
    for (const char* const name : {contract::env::kPythonPath, contract::env::kLibrary}) {
      const std::string value = value_of(first.environment, name);
      for (const NodeLaunch& node : nodes()) {
        const std::string other = value_of(node.environment, name);
        if (plan_.asked_all && other != value)
          return refuse("srun gives the ranks of all nodes the same " + std::string(name) +
                        ", but for --as-horovod it would be " + value + " on " + name_of(first) + " and " +
                        other + " on " + name_of(node) +
                        ": let ddlrun start them, or install it at the same path on all nodes");
      }
      if (!value.empty()) line_.environment[name] = value;
    }
    return {};
  }

  /// All GPUs of the node stay in each rank's cgroup (--gpu-bind=none), so that they can access each other's
  /// memory. A variable selects each rank's own: the words before the command that set it.
  std::vector<std::string> choose_gpus() {
    const auto& ranks = plan_.bindings.front().plan.ranks;
    const bool has_gpus = !ranks.empty() && std::none_of(ranks.begin(), ranks.end(),
                                                         [](const auto& rank) { return rank.gpus.empty(); });
    if (!has_gpus) return {};
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
    if (values.size() != ranks.size()) return {};
    return {"bash", "-c",
            "gpus=(" + join(values, " ") + "); export " + name + "=\"${gpus[SLURM_LOCALID]}\"; exec \"$@\"",
            "bash"};
  }

  const JobSpec& spec_;
  const SchedulerJob& job_;
  const DryPlan& plan_;
  const bool is_in_step_;
  SrunLine line_;
};

}  // namespace

Result<SrunLine> make_srun_line(const JobSpec& spec, const SchedulerJob& job, const DryPlan& plan,
                                const Environment& head_environment, const std::string& mpi_type,
                                const std::vector<std::string>& more_options) {
  return SrunLineBuilder(spec, job, plan, head_environment).make(mpi_type, more_options);
}

}  // namespace ddl::launcher
