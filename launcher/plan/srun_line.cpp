#include "launcher/plan/srun_line.h"

#include <algorithm>
#include <set>

#include "affinity/output/binding_text.h"
#include "base/text.h"
#include "contract/environment.h"
#include "launcher/fleet/srun/srun_command.h"

namespace ddl::launcher {
namespace {

class LineMaker {
 public:
  LineMaker(const JobSpec& spec, const SlurmJob& job, const DryPlan& plan,
            const Environment& head_environment)
      : spec_(spec), job_(job), plan_(plan), line_{{"srun"}, srun_environment(head_environment)} {}

  Result<SrunLine> make(const std::string& mpi_type) {
    if (!mpi_type.empty()) add("--mpi=" + mpi_type);
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
      names.push_back(node.node_names[static_cast<std::size_t>(node.node_index)]);
      if (node.ranks.size() != per_node)
        return refuse("srun places as many ranks on each node, and " + names.back() + " would have " +
                      counted(static_cast<std::int64_t>(node.ranks.size()), "rank") + " and " +
                      names.front() + " " + std::to_string(per_node) +
                      ": choose another -np, or let ddlrun start them");
    }
    add("--nodes=" + std::to_string(nodes().size()));
    add("--nodelist=" + join(names, ","));
    add("--ntasks=" + std::to_string(nodes().size() * per_node));
    add("--ntasks-per-node=" + std::to_string(per_node));
    add(spec_.map_by == MapBy::kNode ? "--distribution=cyclic" : "--distribution=block");
    if (spec_.oversubscribe) add("--overcommit");
    // Without a number, Slurm 22.05 may leave a step without some of the job's GPUs, or refuse it.
    const auto first = std::find_if(job_.nodes.begin(), job_.nodes.end(),
                                    [&](const SlurmNode& node) { return node.name == names.front(); });
    if (first != job_.nodes.end() && first->gpus > 0) add("--gpus-per-node=" + std::to_string(first->gpus));
    return {};
  }

  Status binding() {
    std::set<std::string> masks;
    std::set<int> cpus;
    for (const NodeBinding& node : plan_.bindings) {
      masks.insert(node.plan.ranks.empty() ? "" : affinity::as_mask_cpu(node.plan));
      for (const affinity::RankBinding& rank : node.plan.ranks) cpus.insert(rank.cpus.count());
    }
    if (masks.size() > 1)
      return refuse(
          "srun binds the ranks of all nodes alike, and these nodes differ: let ddlrun start them, or add "
          "--bind-to none");
    if (cpus.size() == 1) add("--cpus-per-task=" + std::to_string(*cpus.begin()));
    add("--cpu-bind=" + (masks.begin()->empty() ? "none" : *masks.begin()));
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

  /// All of the node's GPUs stay in the ranks' cgroup, so that they reach each other's memory.
  void choose_gpus() {
    const auto& ranks = plan_.bindings.front().plan.ranks;
    const bool has_gpus = !ranks.empty() && std::none_of(ranks.begin(), ranks.end(),
                                                         [](const auto& rank) { return rank.gpus.empty(); });
    if (!has_gpus) return;
    add("--gpu-bind=none");
    std::vector<std::string> values;
    std::string name;
    for (const affinity::RankBinding& rank : ranks) {
      for (const auto& [variable, value] : binding_environment(rank, {})) {
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
  SrunLine line_;
};

}  // namespace

Result<SrunLine> make_srun_line(const JobSpec& spec, const SlurmJob& job, const DryPlan& plan,
                                const Environment& head_environment, const std::string& mpi_type) {
  return LineMaker(spec, job, plan, head_environment).make(mpi_type);
}

}  // namespace ddl::launcher
