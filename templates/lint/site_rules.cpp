#include <algorithm>
#include <array>

#include "base/text.h"
#include "templates/lint/rules.h"
#include "templates/lint/started_programs.h"

namespace ddl::templates {
namespace {

/// The CPUs of a node that a job can request: the cores that jobs get, times the hardware threads of each that this
/// job can use.
std::int64_t cpus_for_jobs(const LintContext& context, const affinity::NodeModel& node) {
  const auto topology = affinity::topology_of_model(node, "the node");
  if (!topology) return 0;
  const std::int64_t cores = topology->cores.size();
  const SlurmOption* hint = context.directive("--hint");
  const SlurmOption* threads = context.directive("--threads-per-core");
  if (const auto asked = count_of(threads))
    return cores * std::min<std::int64_t>(*asked, node.threads_per_core);
  if (hint != nullptr && hint->value == "multithread") return cores * node.threads_per_core;
  if (hint != nullptr && hint->value == "nomultithread") return cores;
  // If it is unknown what Slurm counts, more than this is certainly too many.
  return context.site()->slurm.cpus_are == SlurmCpus::kCores ? cores : cores * node.threads_per_core;
}

/// The smallest number of tasks that some node must run.
std::int64_t tasks_of_a_node(const LintContext& context) {
  const auto total = count_of(context.directive("--ntasks"));
  if (total) {
    // --ntasks-per-node is then only the maximum, and without a number of nodes Slurm takes as many as are needed.
    const auto nodes = count_of(context.directive("--nodes"));
    return nodes ? (*total + *nodes - 1) / *nodes : 1;
  }
  // The number may be "*" or a variable: then one is assumed.
  return context.directive("--ntasks") != nullptr
             ? 1
             : count_of(context.directive("--ntasks-per-node")).value_or(1);
}

void check_cpus(LintContext& context, const affinity::NodeModel& node) {
  if (context.script().is_heterogeneous() || context.directive("--overcommit") != nullptr) return;
  const std::int64_t there = cpus_for_jobs(context, node);
  if (there == 0) return;
  const SlurmOption* per_task = context.directive("--cpus-per-task");
  const SlurmOption* per_node = context.directive("--ntasks-per-node");
  const std::int64_t tasks = tasks_of_a_node(context);
  const std::int64_t each = count_of(per_task).value_or(1);
  if (tasks * each > there) {
    const SlurmOption* total = context.directive("--ntasks");
    const SlurmOption* place = per_task != nullptr ? per_task : total != nullptr ? total : per_node;
    context.report("too-many-cpus", place->line,
                   counted(tasks, "task") + " with " + counted(each, "CPU") + " each " +
                       (tasks == 1 ? "needs " : "need ") + counted(tasks * each, "CPU") +
                       " of a node, and jobs get " + std::to_string(there) +
                       " there, so that this one never starts; ask for at most " +
                       (tasks > there ? counted(there, "task") + " on a node"
                                      : counted(there / tasks, "CPU") + " for each task"));
  }
  const SlurmOption* option = context.directive("--mincpus");
  const auto mincpus = count_of(option);
  if (mincpus && *mincpus > there)
    context.report("too-many-cpus", option->line,
                   "jobs get " + counted(there, "CPU") + " of a node there, so that one with --mincpus=" +
                       option->value + " never starts; ask for at most " + std::to_string(there));
}

void check_task_request(LintContext& context, TaskRequest request) {
  const SlurmOption* per_node = context.directive("--ntasks-per-node");
  if (request != TaskRequest::kTotal || per_node == nullptr || context.script().is_heterogeneous()) return;
  context.report(
      "tasks-by-total", per_node->line,
      "this site requires the number of all tasks; write --ntasks, with --mincpus for the CPUs of a node, "
      "instead of --ntasks-per-node");
}

void check_account(LintContext& context, const std::string& suffix) {
  const SlurmOption* account = context.directive("--account");
  if (suffix.empty() || account == nullptr || account->value.ends_with(suffix)) return;
  // What others than the script have to say.
  if (is_placeholder(*account) || account->value.find('$') != std::string::npos) return;
  context.report("account-suffix", account->line,
                 "accounts for these nodes end in " + suffix + ", and " + account->value +
                     " does not: the job may be refused; write " + account->value + suffix +
                     " if that is yours");
}

void check_srun_only(LintContext& context, const std::vector<std::string>& names) {
  for (const SlurmOption& option : context.script().directives) {
    if (std::find(names.begin(), names.end(), option.name) == names.end()) continue;
    context.report(
        "srun-only-option", option.line,
        "this site applies " + option.name +
            " on srun only, and a directive of it does nothing; move it to the srun (ddlrun --slurm "
            "--launcher srun: --srun-option)");
  }
}

void check_mpi(LintContext& context, const std::vector<std::string>& types, const std::string& value,
               int line) {
  const std::string type = context.variables().resolved(value);
  const bool is_known = std::any_of(types.begin(), types.end(), [&](const std::string& one) {
    // pmix stands for the newest of pmix_v3 and its like.
    return one == type || (type == "pmix" && one.starts_with("pmix_"));
  });
  if (is_known || type.empty() || type == "none" || type == "list" || type.find('$') != std::string::npos)
    return;
  context.report("mpi-type", line,
                 "srun of this site has no MPI type " + type + "; it has " + join(types, ", "));
}

void check_mpi_types(LintContext& context, const std::vector<std::string>& types) {
  if (types.empty()) return;
  for (const ScriptStep& step : context.script().steps) {
    if (const SlurmOption* mpi = find_option(step.options, "--mpi"))
      check_mpi(context, types, mpi->value, step.line);
  }
  if (const ShellAssignment* mpi = context.variables().first("SLURM_MPI_TYPE"))
    check_mpi(context, types, mpi->value, mpi->line);
}

void check_closest(LintContext& context, const SiteSlurm& slurm) {
  if (slurm.gpu_bind_closest) return;
  const auto check = [&](std::string_view value, int line) {
    if (value.find("closest") == std::string_view::npos) return;
    context.report(
        "gpu-bind-closest", line,
        "--gpu-bind=closest gives ranks the wrong GPUs at this site; write what ddlrun --show-bind --site "
        "prints for --cpu-bind, and choose GPUs by the rank's local id");
  };
  const auto check_option = [&](const SlurmOption* option) {
    if (option != nullptr) check(option->value, option->line);
  };
  check_option(context.directive("--gpu-bind"));
  for (const ScriptStep& step : context.script().steps) check_option(find_option(step.options, "--gpu-bind"));
  if (const ShellAssignment* bind = context.variables().first("SLURM_GPU_BIND"))
    check(bind->value, bind->line);
}

bool begins_alike(std::string_view text, std::string_view beginning) {
  return in_lower_case(text.substr(0, beginning.size())) == in_lower_case(beginning);
}

bool loads_module(const ScriptText& script, const std::string& beginning) {
  if (beginning.empty()) return false;
  return std::any_of(script.commands.begin(), script.commands.end(), [&](const ShellCommand& command) {
    return (command.is_named("module") || command.is_named("ml")) &&
           std::any_of(command.words.begin() + 1, command.words.end(),
                       [&](const ShellWord& word) { return begins_alike(word.text, beginning); });
  });
}

/// Whether the job asks for GPUs, or the site's nodes come with theirs.
bool has_gpus(const LintContext& context) {
  const auto asks = [](const std::vector<SlurmOption>& options) {
    return std::any_of(options.begin(), options.end(), [](const SlurmOption& one) {
      return one.name.starts_with("--gpus") ||
             (one.name == "--gres" && one.value.find("gpu") != std::string::npos);
    });
  };
  const auto& steps = context.script().steps;
  return context.site()->slurm.gpu_request == GpuRequest::kNone || asks(context.script().directives) ||
         std::any_of(steps.begin(), steps.end(), [&](const ScriptStep& step) { return asks(step.options); });
}

/// What the script starts, as far as it decides whether its ranks use NCCL and who sets its variables.
struct StartedKinds {
  bool may_use_nccl = false;  ///< Python, or a word that names NCCL
  bool has_environment =
      false;  ///< a container or uenv, whose hooks set variables; a file that may; or ddlrun
};

/// Files that set up a shell or Python, and nothing else.
bool is_usual_file(std::string_view file) {
  constexpr std::array<std::string_view, 8> kEnds = {"/activate", "conda.sh", "/bash",      "lmod.sh",
                                                     "/profile",  ".bashrc",  "modules.sh", "activate"};
  return std::any_of(kEnds.begin(), kEnds.end(), [&](std::string_view end) { return file.ends_with(end); });
}

bool names_nccl(std::string_view text) {
  const std::string lower = in_lower_case(text);
  return lower.find("nccl") != std::string::npos || lower.find("rccl") != std::string::npos;
}

bool has_environment_option(const std::vector<SlurmOption>& options) {
  static constexpr std::array<std::string_view, 5> kNames = {"--environment", "--uenv", "--view",
                                                             "--container", "--container-image"};
  return std::any_of(options.begin(), options.end(),
                     [](const SlurmOption& one) { return is_any_of(kNames, one.name); });
}

void look_at(Words words, StartedKinds& kinds) {
  for (const auto& program : started_programs(words)) {
    const std::string_view name = file_name_of(program.front());
    if (name.starts_with("python") || node_launcher(program) != NodeLauncher::kNone)
      kinds.may_use_nccl = true;
    if (is_container(program) || name == "uenv" || name == "ddlrun") kinds.has_environment = true;
  }
}

StartedKinds started_kinds(const LintContext& context) {
  const ScriptText& script = context.script();
  StartedKinds kinds;
  kinds.has_environment = has_environment_option(script.directives);
  for (const ShellCommand& command : script.commands) {
    look_at(texts_of(command.words), kinds);
    const bool reads_file = (command.is_named("source") || command.is_named(".")) && command.words.size() > 1;
    if (reads_file && !is_usual_file(command.words[1].text)) kinds.has_environment = true;
    for (const ShellWord& word : command.words)
      kinds.may_use_nccl = kinds.may_use_nccl || names_nccl(word.text);
  }
  for (const ScriptStep& step : script.steps) {
    look_at(step.program, kinds);
    kinds.has_environment = kinds.has_environment || has_environment_option(step.options);
  }
  for (const ShellCommand& command : script.written_commands) look_at(texts_of(command.words), kinds);
  for (const ScriptAssignment& one : script.variables.all())
    kinds.may_use_nccl = kinds.may_use_nccl || names_nccl(one.name);
  return kinds;
}

void check_needed(LintContext& context, const NeededEnvironment& needed) {
  if (needed.variables.empty() || loads_module(context.script(), needed.module) || !has_gpus(context)) return;
  const SlurmOption* nodes = context.directive("--nodes");
  if (needed.between_nodes && nodes != nullptr && nodes->value == "1") return;
  const StartedKinds kinds = started_kinds(context);
  if (!kinds.may_use_nccl || kinds.has_environment) return;
  std::vector<std::string> exports;
  for (const SiteVariable& variable : needed.variables) {
    if (context.variables().first(variable.name) != nullptr) return;
    exports.push_back(variable.name + "=" + shell_quote(variable.value));
  }
  std::string sentence =
      needed.reason + (needed.reason.ends_with('.') ? " Write" : "; write") + " export " + join(exports, " ");
  if (!needed.module.empty()) sentence += ", or load a module whose name begins with " + needed.module;
  context.report("needed-environment", 0, std::move(sentence));
}

}  // namespace

void check_site(LintContext& context, const SiteProfile& site) {
  check_srun_only(context, site.slurm.srun_only);
  check_mpi_types(context, site.slurm.mpi_types);
  if (site.node) check_cpus(context, *site.node);
  check_task_request(context, site.slurm.task_request);
  check_account(context, site.slurm.account_suffix);
  check_closest(context, site.slurm);
  if (site.setup.needed) check_needed(context, *site.setup.needed);
}

}  // namespace ddl::templates
