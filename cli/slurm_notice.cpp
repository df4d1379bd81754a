#include "cli/slurm_notice.h"

#include <string_view>

#include "base/text.h"

namespace ddl::cli {

namespace {

std::string value_of(const launcher::Environment& environment, const char* name) {
  const auto it = environment.find(name);
  return it == environment.end() ? std::string() : it->second;
}

std::string first_value(const launcher::Environment& environment, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (std::string value = value_of(environment, name); !value.empty()) return value;
  }
  return {};
}

/// "3 nodes node[1-3]"; what Slurm did not set is left out.
std::string nodes_text(const launcher::Environment& environment) {
  const std::string list = first_value(environment, {"SLURM_JOB_NODELIST", "SLURM_NODELIST"});
  const auto count = parse_integer(first_value(environment, {"SLURM_JOB_NUM_NODES", "SLURM_NNODES"}));
  std::string text;
  if (count && *count > 0) text = counted(*count, "node");
  if (!list.empty()) text += (text.empty() ? "nodes " : " ") + list;
  return text;
}

std::string tasks_text(const launcher::Environment& environment) {
  if (const auto tasks = parse_integer(first_value(environment, {"SLURM_NTASKS", "SLURM_NPROCS"}))) {
    return counted(*tasks, "task");
  }
  const std::string per_node = first_value(environment, {"SLURM_TASKS_PER_NODE", "SLURM_NTASKS_PER_NODE"});
  return per_node.empty() ? std::string() : per_node + " tasks per node";
}

}  // namespace

std::optional<std::string> slurm_notice(const launcher::Environment& environment) {
  const std::string job = first_value(environment, {"SLURM_JOB_ID", "SLURM_JOBID"});
  if (job.empty()) return std::nullopt;

  std::vector<std::string> seen;
  if (std::string nodes = nodes_text(environment); !nodes.empty()) seen.push_back(std::move(nodes));
  if (std::string tasks = tasks_text(environment); !tasks.empty()) seen.push_back(std::move(tasks));
  std::string text = "inside Slurm job " + job;
  if (!seen.empty()) text += " (" + join(seen, ", ") + ")";

  // salloc's own shell is a step of one task; srun -n 4 ddlrun is four ddlruns.
  const auto step_tasks = parse_integer(value_of(environment, "SLURM_STEP_NUM_TASKS"));
  if (step_tasks && *step_tasks > 1) {
    return text + ": srun started ddlrun " + std::to_string(*step_tasks) +
           " times, and each one starts all ranks of a job of its own; start ddlrun once, without srun";
  }
  return text +
         ": this version of ddlrun does not use it; it starts ranks on this node, or over ssh where -H says";
}

}  // namespace ddl::cli
