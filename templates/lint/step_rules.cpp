#include <algorithm>

#include "templates/lint/rules.h"

namespace ddl::templates {
namespace {

bool shares_tasks(const std::vector<SlurmOption>& options) {
  const SlurmOption* flags = find_option(options, "--gres-flags");
  return flags != nullptr && flags->value.find("allow-task-sharing") != std::string::npos;
}

/// Silent where the numbers agree, and for one task: who asks for one means one.
void check_tasks(LintContext& context, const ScriptStep& step) {
  const SlurmOption* total = find_option(step.options, "--ntasks");
  const SlurmOption* own = find_option(step.options, "--ntasks-per-node");
  const SlurmOption* per_node = own != nullptr ? own : context.directive("--ntasks-per-node");
  const auto tasks = count_of(total);
  if (!tasks || *tasks == 1 || per_node == nullptr) return;
  const SlurmOption* own_nodes = find_option(step.options, "--nodes");
  const auto nodes = count_of(own_nodes != nullptr ? own_nodes : context.directive("--nodes"));
  const auto each = count_of(per_node);
  if (nodes && each && *nodes * *each == *tasks) return;
  context.report("ntasks-and-per-node", step.line,
                 "--ntasks=" + total->value + " of this srun wins over --ntasks-per-node=" + per_node->value +
                     on_line(per_node->line, step.line) +
                     ", which is then only the most that a node gets; give only one of them");
}

void check_cpus_per_task(LintContext& context, const ScriptStep& step) {
  const SlurmOption* directive = context.directive("--cpus-per-task");
  if (directive == nullptr || directive->value == "1") return;
  if (find_option(step.options, "--cpus-per-task") != nullptr) return;
  if (context.assignment("SRUN_CPUS_PER_TASK") != nullptr) return;
  context.report(
      "cpus-per-task-on-srun", step.line,
      "since Slurm 22.05 srun does not inherit --cpus-per-task" + on_line(directive->line, step.line) +
          ", and tasks here may have one CPU each; write srun --cpus-per-task=$SLURM_CPUS_PER_TASK, or "
          "export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK before");
}

constexpr std::string_view kNoPeers =
    "with --gpus-per-task each task sees only its own GPUs, which keeps ranks of a node from peer-to-peer "
    "copies and IPC; ask for --gpus-per-node and choose by CUDA_VISIBLE_DEVICES or ROCR_VISIBLE_DEVICES, or "
    "add --gres-flags=allow-task-sharing where srun knows it";

/// --gpu-bind=none turns off what --gpus-per-task brings.
void check_gpus_per_task(LintContext& context) {
  const ScriptText& script = context.script();
  const auto is_unbound = [&](const std::vector<SlurmOption>& options) {
    const SlurmOption* bind = find_option(options, "--gpu-bind");
    return shares_tasks(options) || (bind != nullptr && bind->value.find("none") != std::string::npos);
  };
  if (is_unbound(script.directives) || context.assignment("SLURM_GPU_BIND") != nullptr ||
      context.assignment("SLURM_GRES_FLAGS") != nullptr)
    return;
  const bool steps_are_unbound =
      std::any_of(script.steps.begin(), script.steps.end(),
                  [&](const ScriptStep& step) { return is_unbound(step.options); });
  const SlurmOption* directive = context.directive("--gpus-per-task");
  if (directive != nullptr && !steps_are_unbound)
    context.report("gpus-per-task", directive->line, std::string(kNoPeers));
  for (const ScriptStep& step : script.steps) {
    if (find_option(step.options, "--gpus-per-task") != nullptr && !is_unbound(step.options))
      context.report("gpus-per-task", step.line, std::string(kNoPeers));
  }
}

bool has_whole_nodes(const LintContext& context, const SiteProfile& site) {
  const SlurmOption* partition = context.directive("--partition");
  const SlurmOption* qos = context.directive("--qos");
  return gives_whole_nodes(site.slurm, partition != nullptr ? partition->value : "",
                           qos != nullptr ? qos->value : "");
}

bool binds_by_list(std::string_view value) {
  return value.find("map_cpu") != std::string_view::npos || value.find("mask_cpu") != std::string_view::npos;
}

void check_masks(LintContext& context) {
  const ScriptText& script = context.script();
  const SiteProfile* site = context.site();
  if (context.directive("--exclusive") != nullptr || (site != nullptr && has_whole_nodes(context, *site)))
    return;
  const auto report = [&](int line) {
    context.report(
        "masks-on-shared-node", line,
        "map_cpu and mask_cpu name CPUs of the whole node, and a job that shares it with others may have "
        "different ones; add #SBATCH --exclusive, or bind by --cpu-bind=cores");
  };
  for (const ScriptStep& step : script.steps) {
    const SlurmOption* bind = find_option(step.options, "--cpu-bind");
    if (bind != nullptr && binds_by_list(context.resolved(bind->value))) report(step.line);
  }
  for (const ShellAssignment& one : script.assignments) {
    if (one.name == "SLURM_CPU_BIND" && binds_by_list(context.resolved(one.value))) report(one.line);
  }
}

}  // namespace

void check_steps(LintContext& context) {
  for (const ScriptStep& step : context.script().steps) {
    check_tasks(context, step);
    check_cpus_per_task(context, step);
  }
  check_gpus_per_task(context);
  check_masks(context);
}

}  // namespace ddl::templates
