#include "templates/lint/lint.h"

#include <algorithm>
#include <array>

#include "templates/cluster/cluster_check.h"
#include "templates/cluster/slurm_values.h"
#include "templates/lint/rules.h"

namespace ddl::templates {
namespace {

using enum LintSeverity;

constexpr std::array kRules = {
    LintRule{"no-interpreter", kError, "sbatch(1), which refuses such a script"},
    LintRule{"dos-line-ends", kError, "sbatch(1), which refuses such a script"},
    LintRule{"directive-misspelt", kWarning, "sbatch(1), DESCRIPTION"},
    LintRule{"directive-not-read", kWarning, "sbatch(1), DESCRIPTION"},
    LintRule{"variable-in-directive", kWarning, "sbatch(1), DESCRIPTION"},
    LintRule{"unknown-option", kError, "sbatch(1) and srun(1), which refuse it"},
    LintRule{"bad-time", kError, "sbatch(1), --time"},
    LintRule{"bad-value", kError, "sbatch(1), the options that it names"},
    LintRule{"placeholder", kWarning, "sbatch(1), the options that it names"},
    LintRule{"equals-after-letter", kWarning, "sbatch(1) and srun(1), OPTIONS"},
    LintRule{"directives-on-one-line", kWarning, "sbatch(1), DESCRIPTION"},
    LintRule{"option-twice", kWarning, "sbatch(1), DESCRIPTION"},
    LintRule{"counts-contradict", kWarning, "sbatch(1), --nodes, --ntasks, --ntasks-per-node and --gpus"},
    LintRule{"mem-twice", kError, "sbatch(1), --mem"},
    LintRule{"mem-in-megabytes", kWarning, "sbatch(1), --mem"},
    LintRule{"output-folder", kWarning, "sbatch(1), --output"},
    LintRule{"array-output", kWarning, "sbatch(1), filename pattern"},
    LintRule{"variable-without-option", kWarning, "sbatch(1), OUTPUT ENVIRONMENT VARIABLES"},
    LintRule{"signal-usr1", kWarning, "sbatch(1), --signal"},
    LintRule{"signal-to-shell", kWarning, "sbatch(1), --signal; bash(1), SIGNALS"},
    LintRule{"requeue-open-mode", kNote, "sbatch(1), --open-mode"},
    LintRule{"ntasks-and-per-node", kWarning, "srun(1), --ntasks-per-node"},
    LintRule{"cpus-per-task-on-srun", kWarning, "srun(1), --cpus-per-task"},
    LintRule{"gpus-per-task", kWarning, "srun(1), --gpus-per-task and --gpu-bind"},
    LintRule{"masks-on-shared-node", kWarning, "srun(1), --cpu-bind"},
    LintRule{"mask-in-part-of-node", kWarning, "srun(1), --cpu-bind and --exact"},
    LintRule{"blank-in-cpu-list", kError, "srun(1), --cpu-bind, --gpu-bind and --mem-bind"},
    LintRule{"unset-cpu-list", kWarning, "bash(1), PARAMETERS"},
    LintRule{"cpu-twice", kWarning, "srun(1), --cpu-bind"},
    LintRule{"srun-ddlrun", kError, "srun(1) and mpirun(1), DESCRIPTION"},
    LintRule{"background-without-wait", kError, "sbatch(1), DESCRIPTION; bash(1), wait"},
    LintRule{"nodes-without-launcher", kWarning, "sbatch(1), DESCRIPTION"},
    LintRule{"launcher-on-one-node", kWarning, "sbatch(1), DESCRIPTION; the launcher's documentation"},
    LintRule{"launcher-per-task", kWarning, "srun(1), DESCRIPTION; the launcher's documentation"},
    LintRule{"launcher-sees-one-gpu", kWarning, "srun(1), OUTPUT ENVIRONMENT VARIABLES, SLURM_LOCALID"},
    LintRule{"folder-of-one-node", kWarning, "mktemp(1); sbatch(1), DESCRIPTION"},
    LintRule{"het-group-unused", kWarning, "srun(1), --het-group"},
    LintRule{"broken-continuation", kError, "bash(1), QUOTING"},
    LintRule{"backslash-in-quotes", kWarning, "bash(1), QUOTING"},
    LintRule{"task-variable-expanded", kError, "bash(1), QUOTING and Here Documents"},
    LintRule{"exec-star", kWarning, "bash(1), Special Parameters"},
    LintRule{"wrapper-file-race", kNote, "LUMI's documentation, Distribution and binding, has such a file"},
    LintRule{"two-visible-variables", kWarning, "AMD's documentation of ROCm, GPU isolation techniques"},
    LintRule{"too-many-cpus", kError, "sbatch(1), --cpus-per-task, and the site's profile"},
    LintRule{"cpu-beyond-node", kError, "srun(1), --cpu-bind, and the site's profile"},
    LintRule{"reserved-cpu", kError, "srun(1), --cpu-bind, and the site's profile, reserved"},
    LintRule{"account-suffix", kWarning, "the site's profile, account-suffix"},
    LintRule{"srun-only-option", kWarning, "the site's profile, srun-only"},
    LintRule{"tasks-by-total", kWarning, "the site's profile, task-request"},
    LintRule{"mpi-type", kError, "srun(1), --mpi, and the site's profile, mpi-types"},
    LintRule{"gpu-bind-closest", kWarning, "the site's profile, gpu-bind-closest"},
    LintRule{"needed-environment", kWarning, "the site's profile, needed"},
};

}  // namespace

std::string_view name_of(LintSeverity severity) {
  return severity == kError ? "error" : severity == kWarning ? "warning" : "note";
}

std::span<const LintRule> lint_rules() { return kRules; }

NodeRequest nodes_of_script(std::string_view script) {
  const ScriptText read = read_script(script);
  const auto value = [&read](std::string_view name) {
    const SlurmOption* option = find_option(read.directives, name);
    return option != nullptr ? option->value : std::string();
  };
  return {value("--partition"), value("--constraint"), value("--qos")};
}

std::vector<LintFinding> lint_script(std::string_view script, const SiteProfile* site) {
  if (site != nullptr && !is_for(*site, nodes_of_script(script))) site = nullptr;
  LintContext context(script, site);
  check_form(context);
  check_directives(context);
  check_values(context);
  check_outputs(context);
  check_steps(context);
  check_cpu_lists(context);
  check_launches(context);
  check_launchers(context);
  check_wrappers(context);
  if (site != nullptr) check_site(context, *site);
  std::vector<LintFinding> findings = context.take_findings();
  std::stable_sort(findings.begin(), findings.end(),
                   [](const LintFinding& a, const LintFinding& b) { return a.line < b.line; });
  return findings;
}

std::vector<LintFinding> cluster_findings(const ClusterFacts& facts, const ScriptRequest& request,
                                          const BatchJob& job, bool is_for_it) {
  ClusterRequest asked;
  asked.partition = job.partition;
  asked.nodes = std::max(job.nodes, 1);
  asked.gpus_per_node = job.gpus_per_node;
  asked.cpus_per_node = job.tasks_per_node * std::max(job.cpus_per_task, 1);
  asked.minutes = slurm_minutes(request.time_limit);
  asked.memory_mb_per_node = slurm_megabytes(job.memory);
  std::vector<LintFinding> findings;
  for (const ClusterObjection& objection : check_against(facts, asked)) {
    findings.push_back({objection.rule, is_for_it ? LintSeverity::kError : LintSeverity::kWarning, 0,
                        objection.sentence, "the cluster here"});
  }
  return findings;
}

}  // namespace ddl::templates
