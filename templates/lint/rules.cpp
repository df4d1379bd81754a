#include "templates/lint/rules.h"

#include <algorithm>
#include <array>

#include "base/text.h"

namespace ddl::templates {

const SlurmOption* find_option(const std::vector<SlurmOption>& options, std::string_view name) {
  const auto found = std::find_if(options.rbegin(), options.rend(),
                                  [&](const SlurmOption& option) { return option.name == name; });
  return found == options.rend() ? nullptr : &*found;
}

std::optional<std::int64_t> count_of(const SlurmOption* option) {
  if (option == nullptr) return std::nullopt;
  // More than any job has: products of three such counts do not overflow.
  constexpr std::int64_t kMaxCount = 1'000'000;
  const auto number = parse_integer(option->value);
  if (!number || *number < 1 || *number > kMaxCount) return std::nullopt;
  return number;
}

std::string on_line(int other, int line) { return other == line ? "" : " on line " + std::to_string(other); }

const SlurmOption* option_of(const LintContext& context, const ScriptStep& step, std::string_view name) {
  const SlurmOption* own = find_option(step.options, name);
  return own != nullptr ? own : context.directive(name);
}

std::int64_t nodes_of_job(const LintContext& context) {
  const SlurmOption* option = context.directive("--nodes");
  if (option == nullptr) return 1;
  const SlurmOption first{option->name, option->value.substr(0, option->value.find('-')), option->line};
  return count_of(&first).value_or(1);
}

TasksOfNode tasks_of_node(const LintContext& context, const ScriptStep& step) {
  using enum TasksOfNode;
  const SlurmOption* total = option_of(context, step, "--ntasks");
  const SlurmOption* per_node = option_of(context, step, "--ntasks-per-node");
  if (total != nullptr) {
    constexpr std::array<std::string_view, 4> kNodes = {"$SLURM_NNODES", "${SLURM_NNODES}",
                                                        "$SLURM_JOB_NUM_NODES", "${SLURM_JOB_NUM_NODES}"};
    if (is_any_of(kNodes, total->value)) return kOne;
    const auto tasks = count_of(total);
    const SlurmOption* nodes = option_of(context, step, "--nodes");
    if (!tasks || (nodes != nullptr && !count_of(nodes))) return tasks == 1 ? kOne : kUnknown;
    return *tasks <= count_of(nodes).value_or(1) ? kOne : kSeveral;
  }
  if (per_node != nullptr) {
    const auto tasks = count_of(per_node);
    return !tasks ? kUnknown : *tasks == 1 ? kOne : kSeveral;
  }
  for (const std::string_view name : {"--ntasks-per-gpu", "--ntasks-per-socket", "--ntasks-per-core"}) {
    if (option_of(context, step, name) != nullptr) return kUnknown;
  }
  const bool by_gpus =
      option_of(context, step, "--gpus-per-task") != nullptr && option_of(context, step, "--gpus") != nullptr;
  return by_gpus || !has_all_options(step) ? kUnknown : kUnsaid;
}

bool has_all_options(const ScriptStep& step) {
  return step.program.empty() || !step.program.front().starts_with('$');
}

bool is_jobs_own(const LintContext& context) {
  constexpr std::array<std::string_view, 5> kArguments = {"$1", "${1", "$@", "${@", "$*"};
  return !context.script().directive_lines.empty() ||
         std::none_of(kArguments.begin(), kArguments.end(), [&](std::string_view one) {
           return context.raw().find(one) != std::string_view::npos;
         });
}

bool is_task_variable(std::string_view name) {
  constexpr std::array<std::string_view, 12> kNames = {
      "SLURM_LOCALID", "SLURM_PROCID",      "SLURM_NODEID",         "SLURM_TASK_PID",
      "PMI_RANK",      "PMIX_RANK",         "PMI_LOCAL_RANK",       "MPI_LOCALRANKID",
      "PALS_RANKID",   "PALS_LOCAL_RANKID", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK"};
  return is_any_of(kNames, name);
}

std::span<const std::string_view> device_variables() {
  static constexpr std::array<std::string_view, 5> kNames = {"CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES",
                                                             "HIP_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL",
                                                             "ZE_AFFINITY_MASK"};
  return kNames;
}

bool is_any_of(std::span<const std::string_view> names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

LintContext::LintContext(std::string_view raw, const SiteProfile* site)
    : raw_(raw),
      site_(site),
      script_(read_script(raw.substr(raw.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0))) {}

const SlurmOption* LintContext::directive(std::string_view name) const {
  return find_option(script_.directives, name);
}

std::optional<std::size_t> LintContext::place_of(const ScriptStep& step) const {
  if (script_.commands[step.command].in_function) return std::nullopt;
  return step.command;
}

void LintContext::report(std::string_view rule, int line, std::string sentence) {
  const auto rules = lint_rules();
  const auto found =
      std::find_if(rules.begin(), rules.end(), [&](const LintRule& one) { return one.name == rule; });
  DDL_CHECK(found != rules.end(), std::string(rule));
  findings_.push_back(
      {std::string(rule), found->severity, line, std::move(sentence), std::string(found->reference)});
}

}  // namespace ddl::templates
