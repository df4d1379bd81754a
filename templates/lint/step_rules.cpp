// Rules for each srun in a script: how many tasks, CPUs and GPUs it asks for, and the lists of CPUs that it binds to.
#include <algorithm>
#include <array>
#include <cctype>

#include "base/text.h"
#include "templates/lint/rules.h"

namespace ddl::templates {
namespace {

constexpr std::array<std::string_view, 5> kOtherBinds = {"none", "map_", "mask_", "$", "`"};

bool shares_tasks(const std::vector<SlurmOption>& options) {
  const SlurmOption* flags = find_option(options, "--gres-flags");
  return flags != nullptr && flags->value.find("allow-task-sharing") != std::string::npos;
}

/// No finding if the numbers agree, or for one task, which is surely intended.
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
                     ", which is then only the maximum of a node; give only one of them");
}

/// Whether --cpu-bind is none, a list, or not certain.
bool binds_otherwise(std::string_view bind) {
  return std::any_of(kOtherBinds.begin(), kOtherBinds.end(),
                     [&](std::string_view one) { return bind.find(one) != std::string_view::npos; });
}

void check_cpus_per_task(LintContext& context, const ScriptStep& step) {
  const SlurmOption* directive = context.directive("--cpus-per-task");
  if (directive == nullptr || directive->value == "1") return;
  if (find_option(step.options, "--cpus-per-task") != nullptr) return;
  if (context.variables().first("SRUN_CPUS_PER_TASK") != nullptr) return;
  const SlurmOption* bind = find_option(step.options, "--cpu-bind");
  const ScriptAssignment* variable = context.variables().first("SLURM_CPU_BIND");
  const std::string binds = bind != nullptr ? bind->value : variable != nullptr ? variable->value : "";
  // A list, or no binding at all, gives tasks their CPUs whatever the step has.
  if (!has_all_options(step) || binds_otherwise(binds)) return;
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

/// --gpu-bind=none turns off the binding that --gpus-per-task implies.
void check_gpus_per_task(LintContext& context) {
  const ScriptText& script = context.script();
  const auto is_unbound = [&](const std::vector<SlurmOption>& options) {
    const SlurmOption* bind = find_option(options, "--gpu-bind");
    return shares_tasks(options) || (bind != nullptr && bind->value.find("none") != std::string::npos);
  };
  if (is_unbound(script.directives) || context.variables().first("SLURM_GPU_BIND") != nullptr ||
      context.variables().first("SLURM_GRES_FLAGS") != nullptr)
    return;
  const bool steps_are_unbound =
      std::any_of(script.steps.begin(), script.steps.end(),
                  [&](const ScriptStep& step) { return is_unbound(step.options); });
  // A single task has nobody on its node whose GPUs it could reach.
  const auto has_peers = [&](const ScriptStep& step) {
    const TasksOfNode tasks = tasks_of_node(context, step);
    return tasks == TasksOfNode::kSeveral || tasks == TasksOfNode::kUnknown;
  };
  const SlurmOption* directive = context.directive("--gpus-per-task");
  const bool have_peers = script.steps.empty()
                              ? has_peers(ScriptStep{})
                              : std::any_of(script.steps.begin(), script.steps.end(), has_peers);
  if (directive != nullptr && !steps_are_unbound && have_peers)
    context.report("gpus-per-task", directive->line, std::string(kNoPeers));
  for (const ScriptStep& step : script.steps) {
    if (find_option(step.options, "--gpus-per-task") != nullptr && !is_unbound(step.options) &&
        has_peers(step))
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
    std::vector<std::string> unset;
    if (bind != nullptr &&
        binds_by_list(context.variables().expanded(bind->value, context.place_of(step), unset)))
      report(step.line);
  }
  for (const ScriptAssignment& one : script.variables.all()) {
    if (one.name == "SLURM_CPU_BIND" && binds_by_list(context.variables().resolved(one.value)))
      report(one.line);
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

namespace {

/// A value of srun's --cpu-bind, or of SLURM_CPU_BIND.
struct CpuListUse {
  int line = 0;
  std::string value;
  const ScriptStep* step = nullptr;  ///< null for the variable
  std::optional<std::size_t> place;  ///< for LintContext::expanded
};

constexpr std::string_view kBindVariable = "SLURM_CPU_BIND";

/// Whether the next assignment of SLURM_CPU_BIND only appends to this one, and no srun has used it before.
bool is_continued(const ScriptText& script, const ScriptAssignment& one, const ScriptAssignment& next) {
  if (!next.command || !one.command) return false;
  // Steps are in the order of their commands.
  const auto step =
      std::upper_bound(script.steps.begin(), script.steps.end(), *one.command,
                       [](std::size_t command, const ScriptStep& other) { return command < other.command; });
  const bool is_used = step != script.steps.end() && step->command < *next.command;
  const auto& names = next.expands;
  return !is_used && (next.appends || std::find(names.begin(), names.end(), next.name) != names.end());
}

std::vector<CpuListUse> uses_of_cpu_lists(const LintContext& context) {
  std::vector<CpuListUse> uses;
  const ScriptText& script = context.script();
  for (const ScriptStep& step : script.steps) {
    if (const SlurmOption* bind = find_option(step.options, "--cpu-bind"))
      uses.push_back({step.line, bind->value, &step, context.place_of(step)});
  }
  const auto& indices = script.variables.indices_of(kBindVariable);
  for (std::size_t i = 0; i < indices.size(); ++i) {
    const ScriptAssignment& one = script.variables.all()[indices[i]];
    if (i + 1 < indices.size() && is_continued(script, one, script.variables.all()[indices[i + 1]])) continue;
    uses.push_back({one.line, (one.appends ? "${" + one.name + "}" : "") + one.value, nullptr, one.command});
  }
  return uses;
}

struct CpuList {
  std::vector<CpuSet> cpus;  ///< by local rank
  bool repeats = false;      ///< as "0x1*4" does: ranks are to share
};

/// Reads an entry as srun does: 0xff or ff in a mask, 12 or 0x12 in a map.
std::optional<CpuSet> cpus_of(std::string_view entry, bool is_mask) {
  constexpr std::size_t kMaxDigits = 2048;
  constexpr int kMaxCpu = 8191;
  CpuSet cpus;
  const bool is_hex = is_mask || entry.starts_with("0x");
  if (entry.starts_with("0x")) entry.remove_prefix(2);
  if (entry.empty() || entry.size() > kMaxDigits) return std::nullopt;
  int number = 0;
  for (std::size_t i = 0; i < entry.size(); ++i) {
    const char c = entry[i];
    const int digit = c >= '0' && c <= '9'             ? c - '0'
                      : is_hex && c >= 'a' && c <= 'f' ? c - 'a' + 10
                      : is_hex && c >= 'A' && c <= 'F' ? c - 'A' + 10
                                                       : -1;
    if (digit < 0) return std::nullopt;
    number = std::min(number * (is_hex ? 16 : 10) + digit, kMaxCpu + 1);
    const int first = (entry.size() - 1 - i) * 4;
    for (int bit = 0; is_mask && bit < 4; ++bit) {
      if ((digit >> bit & 1) != 0) cpus.add(first + bit);
    }
  }
  if (!is_mask && number > kMaxCpu) return std::nullopt;
  if (!is_mask) cpus.add(number);
  return cpus;
}

/// Where the list itself begins, and its kind; nullopt for other ways to bind.
struct ListStart {
  std::size_t at = 0;
  bool is_mask = false;
};
std::optional<ListStart> list_start(std::string_view value) {
  for (const std::string_view kind : {"map_cpu:", "mask_cpu:"}) {
    const std::size_t at = value.find(kind);
    if (at != std::string_view::npos && (at == 0 || value[at - 1] == ','))
      return ListStart{at + kind.size(), kind == "mask_cpu:"};
  }
  return std::nullopt;
}

std::optional<CpuList> read_list(std::string_view list, bool is_mask) {
  CpuList read;
  for (std::string_view entry : split(list, ',')) {
    const std::size_t star = entry.find('*');
    read.repeats = read.repeats || star != std::string_view::npos;
    const auto cpus = cpus_of(entry.substr(0, star), is_mask);
    if (!cpus) return std::nullopt;
    read.cpus.push_back(*cpus);
  }
  return read;
}

bool has_blank(std::string_view text) { return text.find_first_of(" \t\n") != std::string_view::npos; }

/// Whether the list ends with a comma or its colon, and the word that srun takes for the program goes on with it. A
/// blank in $(...) is not the list's.
bool ends_at_blank(std::string_view value, const ScriptStep* step) {
  const std::string list = without_substitutions(value);
  if (has_blank(list)) return true;
  if (step == nullptr || step->program.empty() || step->program.front().empty()) return false;
  const std::string& next = step->program.front();
  const bool goes_on = std::isdigit(static_cast<unsigned char>(next[0])) != 0 || next[0] == '$' ||
                       next.find_first_not_of("0123456789abcdefABCDEFx,*") == std::string::npos;
  return next[0] == ',' || ((list.empty() || list.ends_with(',')) && goes_on);
}

/// Lists of memory nodes and GPUs, which srun reads in the same way.
void check_other_lists(LintContext& context, const ScriptStep& step) {
  for (const std::string_view name : {"--mem-bind", "--gpu-bind"}) {
    const SlurmOption* bind = find_option(step.options, name);
    if (bind == nullptr) continue;
    std::vector<std::string> unset;
    const std::string value = context.variables().expanded(bind->value, context.place_of(step), unset);
    for (const std::string_view kind : {"map_mem:", "mask_mem:", "map_gpu:", "mask_gpu:", "map:", "mask:"}) {
      const std::size_t at = value.find(kind);
      if (!unset.empty() || at == std::string::npos || (at != 0 && value[at - 1] != ',')) continue;
      if (!ends_at_blank(std::string_view(value).substr(at + kind.size()), &step)) continue;
      context.report("blank-in-cpu-list", step.line,
                     "the list of " + std::string(name) +
                         " ends at its first blank, and srun takes what follows for the program; write it "
                         "without blanks");
      break;
    }
  }
}

void check_twice(LintContext& context, int line, const CpuList& list) {
  if (list.repeats || context.directive("--overcommit") != nullptr) return;
  CpuSet seen;
  for (std::size_t later = 0; later < list.cpus.size(); ++later) {
    const CpuSet& own = list.cpus[later];
    if (!seen.intersects(own)) {
      seen |= own;
      continue;
    }
    const auto first = std::find_if(list.cpus.begin(), list.cpus.end(),
                                    [&](const CpuSet& other) { return other.intersects(own); });
    const CpuSet both = *first & own;
    context.report("cpu-twice", line,
                   "local ranks " + std::to_string(first - list.cpus.begin()) + " and " +
                       std::to_string(later) + " both have " + counted(both.count(), "CPU") + " (" +
                       both.list() + ") and take turns there; give each rank CPUs of its own");
    return;
  }
}

/// Checks the CPUs against those of the whole node, and those that jobs get.
void check_node(LintContext& context, const CpuListUse& use, const CpuList& list, const SiteProfile& site) {
  const affinity::NodeModel& node = *site.node;
  const auto topology = affinity::topology_of_model(node, site.name);
  if (!topology) return;
  const int count =
      node.packages * node.numa_per_package * node.l3s_per_numa * node.cores_per_l3 * node.threads_per_core;
  const CpuSet all = CpuSet::range(0, count - 1);
  CpuSet allowed;
  for (const affinity::Core& core : topology->cores) allowed |= core.cpus;
  // A job that sets the number of cores for the system has other cores than usual.
  const bool specializes =
      context.directive("--core-spec") != nullptr || context.directive("--thread-spec") != nullptr;
  for (std::size_t rank = 0; rank < list.cpus.size(); ++rank) {
    const CpuSet& own = list.cpus[rank];
    if (!own.is_subset_of(all)) {
      context.report("cpu-beyond-node", use.line,
                     "local rank " + std::to_string(rank) + " is to have CPU " +
                         std::to_string((own - all).first()) + ", and a node of " + site.name +
                         " has CPUs 0 to " + std::to_string(count - 1) +
                         "; ddlrun --show-bind --site prints a list for it");
      return;
    }
    if (own.is_subset_of(allowed) || specializes) continue;
    context.report("reserved-cpu", use.line,
                   "local rank " + std::to_string(rank) + " is to have CPU " + (own - allowed).list() +
                       ", which nodes of " + site.name + " keep for the system; jobs get CPUs " +
                       allowed.list());
    return;
  }
}

/// Slurm obeys a list only in a step that has the whole node, and --cpus-per-task implies --exact.
void check_part(LintContext& context, const ScriptStep& step) {
  const auto* const exact = find_option(step.options, "--exact");
  const auto* const exclusive = find_option(step.options, "--exclusive");
  const SlurmOption* const option = exact != nullptr ? exact : exclusive;
  const std::string remedy = "; omit it: a list of CPUs needs a step that has the whole node";
  if (option != nullptr) {
    context.report(
        "mask-in-part-of-node", step.line,
        option->name + " leaves the step a part of the node, and Slurm then may ignore the list" + remedy);
    return;
  }
  const SiteProfile* site = context.site();
  const SlurmOption* own = find_option(step.options, "--cpus-per-task");
  if (site == nullptr || !site->node || own == nullptr) return;
  const bool is_known = site->slurm.cpus_are != SlurmCpus::kUnknown || site->node->threads_per_core == 1;
  const SlurmOption* per_node = find_option(step.options, "--ntasks-per-node");
  if (per_node == nullptr) per_node = context.directive("--ntasks-per-node");
  const bool is_resized =
      find_option(step.options, "--ntasks") != nullptr || context.directive("--ntasks") != nullptr;
  SlurmOption cpus = *own;
  if (cpus.value == "$SLURM_CPUS_PER_TASK" || cpus.value == "${SLURM_CPUS_PER_TASK}") {
    const SlurmOption* directive = context.directive("--cpus-per-task");
    if (directive == nullptr) return;
    cpus = *directive;
  }
  const auto tasks = count_of(per_node);
  const auto each = count_of(&cpus);
  const auto topology = affinity::topology_of_model(*site->node, site->name);
  if (!is_known || is_resized || !tasks || !each || !topology) return;
  const auto all = std::ssize(topology->cores) *
                   (site->slurm.cpus_are == SlurmCpus::kThreads ? site->node->threads_per_core : 1);
  if (*tasks * *each >= all) return;
  context.report("mask-in-part-of-node", step.line,
                 "--cpus-per-task=" + cpus.value + " leaves the step " + std::to_string(*tasks * *each) +
                     " of " + counted(all, "CPU") + " of a node, and Slurm then may ignore the list" +
                     remedy);
}

}  // namespace

void check_cpu_lists(LintContext& context) {
  for (const ScriptStep& step : context.script().steps) check_other_lists(context, step);
  for (const CpuListUse& use : uses_of_cpu_lists(context)) {
    std::vector<std::string> unset;
    const std::string value = context.variables().expanded(use.value, use.place, unset);
    if (!unset.empty()) {
      const std::string name = "$" + unset.front();
      const ShellAssignment* later = context.variables().first(unset.front());
      const std::string why = later == nullptr ? "the script sets no " + name + ", which is empty then"
                                               : name + " is set only later, on line " +
                                                     std::to_string(later->line) + ": it is empty here";
      context.report("unset-cpu-list", use.line,
                     why + ", and srun binds to something else; set it before, or write the list here");
      continue;
    }
    const auto start = list_start(value);
    if (!start) continue;
    const std::string_view text = std::string_view(value).substr(start->at);
    if (ends_at_blank(text, use.step)) {
      context.report(
          "blank-in-cpu-list", use.line,
          "the list of CPUs ends at its first blank, and srun takes what follows for the program; write it "
          "without blanks");
      continue;
    }
    if (use.step != nullptr) check_part(context, *use.step);
    const auto list = read_list(text, start->is_mask);
    if (!list) continue;
    check_twice(context, use.line, *list);
    if (context.site() != nullptr && context.site()->node) check_node(context, use, *list, *context.site());
  }
}

}  // namespace ddl::templates
