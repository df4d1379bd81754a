// Rules for what each rank is to do by itself: the wrapper scripts that the job writes for srun, and the variables
// that the script's own shell replaces too early.
#include <algorithm>
#include <array>
#include <set>
#include <span>

#include "base/text.h"
#include "templates/lint/rules.h"
#include "templates/lint/started_programs.h"

namespace ddl::templates {
namespace {

std::string early(const std::string& name) {
  return "the script's own shell replaces $" + name + ", once and for all ranks: ";
}

const std::string* first_task_variable(const std::vector<std::string>& names) {
  const auto found = std::find_if(names.begin(), names.end(), is_task_variable);
  return found == names.end() ? nullptr : &*found;
}

/// "./name", "$PWD/name" and "name" are the same file.
std::string_view without_current_directory(std::string_view path) {
  for (const std::string_view here : {"./", "$PWD/", "${PWD}/"}) {
    if (path.starts_with(here)) path.remove_prefix(here.size());
  }
  return path;
}

/// The files that chmod makes executable, or that srun or a shell of its starts.
std::set<std::string_view> started_files(const ScriptText& script) {
  std::set<std::string_view> files;
  for (const ScriptStep& step : script.steps) {
    auto words = without_prefixes(step.program);
    if (words.size() > 1 && is_shell(words.front())) words = words.subspan(1);
    if (!words.empty()) files.insert(without_current_directory(words.front()));
  }
  for (const ShellCommand& command : script.commands) {
    if (!command.is_named("chmod")) continue;
    for (const ShellWord& word : command.words) files.insert(without_current_directory(word.text));
  }
  return files;
}

/// Wrappers that echo and printf write.
void check_echoed_wrappers(LintContext& context) {
  std::set<std::string_view> files = started_files(context.script());
  for (const ShellCommand& command : context.script().commands) {
    if ((!command.is_named("echo") && !command.is_named("printf")) || command.outputs.empty()) continue;
    const auto word = std::find_if(command.words.begin(), command.words.end(), [](const ShellWord& one) {
      return first_task_variable(one.expands) != nullptr;
    });
    if (word == command.words.end() || files.erase(without_current_directory(command.outputs.back())) == 0)
      continue;
    context.report(
        "task-variable-expanded", command.line,
        early(*first_task_variable(word->expands)) + "write the text in '...', so that each rank does it");
  }
}

void report_device_variable(LintContext& context, const ShellAssignment& one) {
  const std::string& variable = *first_task_variable(one.expands);
  context.report("task-variable-expanded", one.line,
                 early(variable) + "let each rank set " + one.name + ", as in srun bash -c '" + one.name +
                     "=$" + variable + " ...'");
}

/// Such a variable that the script exports before the srun. One that is set at several places may have been set by
/// each rank.
void check_exported_device(LintContext& context, std::string_view name) {
  const ScriptText& script = context.script();
  const auto is_it = [&](const ScriptAssignment& one) { return one.name == name; };
  const auto one = std::find_if(script.variables.all().begin(), script.variables.all().end(), is_it);
  if (one == script.variables.all().end() || !one->command || first_task_variable(one->expands) == nullptr ||
      std::any_of(one + 1, script.variables.all().end(), is_it))
    return;
  bool is_exported = false;
  for (const ShellCommand& command : script.commands) {
    const bool has_name = std::any_of(command.words.begin(), command.words.end(), [&](const ShellWord& word) {
      return word.text.starts_with(name) &&
             (word.text.size() == name.size() || word.text[name.size()] == '=');
    });
    if (has_name && command.is_named("unset")) return;
    is_exported = is_exported || (has_name && command.is_named("export"));
  }
  const bool reaches_ranks =
      std::any_of(script.steps.begin(), script.steps.end(), [&](const ScriptStep& step) {
        return step.command > *one->command && tasks_of_node(context, step) != TasksOfNode::kOne;
      });
  if (is_exported && reaches_ranks) report_device_variable(context, *one);
}

void check_device_variables(LintContext& context) {
  for (const std::string_view name : device_variables()) check_exported_device(context, name);
  for (const ScriptStep& step : context.script().steps) {
    for (const ShellAssignment& one : step.environment) {
      const bool is_expanded =
          is_any_of(device_variables(), one.name) && first_task_variable(one.expands) != nullptr;
      if (is_expanded && tasks_of_node(context, step) != TasksOfNode::kOne)
        report_device_variable(context, one);
    }
  }
}

void check_task_variables(LintContext& context) {
  if (!is_jobs_own(context) && context.script().steps.empty()) return;
  for (const ShellCommand& command : context.script().commands) {
    for (const ShellExpansion& one : command.here_expansions) {
      if (!is_task_variable(one.name)) continue;
      context.report("task-variable-expanded", one.line,
                     early(one.name) + "write " + (one.is_arithmetic ? "\\$((" : "\\$" + one.name) +
                         ", or quote the word behind <<, so that each rank does it");
      break;
    }
  }
  for (const ScriptStep& step : context.script().steps) {
    const std::string* found = first_task_variable(step.expands);
    if (found == nullptr) continue;
    context.report("task-variable-expanded", step.line,
                   early(*found) + "let each rank do it, as in srun bash -c '... $" + *found + " ...'");
  }
  check_echoed_wrappers(context);
  check_device_variables(context);
}

constexpr std::string_view kExecStar =
    "exec with $* or an unquoted $@ splits arguments at blanks and loses their quotes; write exec \"$@\"";

bool has_exec_star(std::string_view text) {
  return text.find("exec $*") != std::string_view::npos || text.find("exec $@") != std::string_view::npos;
}

void check_exec(LintContext& context, const std::vector<ShellCommand>& commands) {
  for (const ShellCommand& command : commands) {
    const auto is_star = [](const ShellWord& word) {
      return !word.quoted && (word.text == "$*" || word.text == "$@");
    };
    const bool writes = (command.is_named("echo") || command.is_named("printf")) && !command.outputs.empty();
    const bool is_wrong =
        (command.is_named("exec") && std::any_of(command.words.begin(), command.words.end(), is_star)) ||
        (writes && std::any_of(command.words.begin(), command.words.end(),
                               [](const ShellWord& word) { return has_exec_star(word.text); }));
    if (is_wrong) context.report("exec-star", command.line, std::string(kExecStar));
  }
}

/// The path below the job's directory; "" if the file may be elsewhere, or its name may contain the job's number.
std::string_view path_in_job_directory(std::string_view path) {
  constexpr std::array<std::string_view, 5> kHere = {"./", "$PWD/", "${PWD}/", "$SLURM_SUBMIT_DIR/",
                                                     "${SLURM_SUBMIT_DIR}/"};
  for (const std::string_view here : kHere) {
    if (path.starts_with(here)) path.remove_prefix(here.size());
  }
  const bool is_elsewhere =
      path.starts_with('/') || path.starts_with('~') || path.find_first_of("$`*?") != std::string_view::npos;
  return is_elsewhere ? "" : path;
}

/// Whether it changes to a directory given by a variable, which may be a directory of the job's own.
bool may_go_to_own_directory(const ShellCommand& command) {
  if (!command.is_named("cd") && !command.is_named("pushd")) return false;
  return std::any_of(command.words.begin() + 1, command.words.end(), [](const ShellWord& word) {
    const bool is_shared = word.text == "$SLURM_SUBMIT_DIR" || word.text == "${SLURM_SUBMIT_DIR}" ||
                           word.text == "$HOME" || word.text == "${HOME}" || word.text == "$PWD";
    return !is_shared && word.text.find_first_of("$`") != std::string::npos;
  });
}

/// Paths below the job's directory that chmod makes executable or srun starts.
std::set<std::string, std::less<>> executed_files(const ScriptText& script) {
  std::set<std::string, std::less<>> files;
  for (const ShellCommand& command : script.commands) {
    if (!command.is_named("chmod")) continue;
    for (const ShellWord& word : command.words) files.emplace(path_in_job_directory(word.text));
  }
  for (const ScriptStep& step : script.steps) {
    for (const std::string& word : step.program) files.emplace(path_in_job_directory(word));
  }
  files.erase("");
  return files;
}

void check_races(LintContext& context) {
  const ScriptText& script = context.script();
  const auto executed = executed_files(script);
  std::set<std::string, std::less<>> reported;
  for (const ShellCommand& command : script.commands) {
    if (may_go_to_own_directory(command)) return;
    std::vector<std::string> files = command.outputs;
    if (command.is_named("tee") && command.here_document_line != 0) {
      for (std::size_t i = 1; i < command.words.size(); ++i) files.push_back(command.words[i].text);
    } else if (!command.is_named("cat") && !command.is_named("echo") && !command.is_named("printf")) {
      continue;
    }
    for (const std::string& file : files) {
      const std::string_view path = path_in_job_directory(file);
      if (!executed.contains(path) || !reported.emplace(path).second) continue;
      context.report(
          "wrapper-file-race", command.line,
          "every job that runs this script writes " + std::string(path) +
              " to the same place, and one may use it while another writes it; put $SLURM_JOB_ID into "
              "its name, or keep it as a file that no job writes");
    }
  }
}

void check_visible_variables(LintContext& context) {
  const ShellAssignment* rocr = context.variables().first("ROCR_VISIBLE_DEVICES");
  const ShellAssignment* hip = context.variables().first("HIP_VISIBLE_DEVICES");
  if (rocr == nullptr || hip == nullptr) return;
  for (const ShellCommand& command : context.script().commands) {
    if (command.is_named("unset")) return;
  }
  const bool rocr_is_later = rocr->line > hip->line;
  context.report(
      "two-visible-variables", std::max(rocr->line, hip->line),
      std::string(rocr_is_later ? rocr->name : hip->name) + " is set beside " +
          (rocr_is_later ? hip->name : rocr->name) + on_line(std::min(rocr->line, hip->line), 0) +
          ": ROCR chooses first, and HIP then numbers only the remaining GPUs, from 0; set one of them");
}

}  // namespace

void check_wrappers(LintContext& context) {
  check_task_variables(context);
  check_exec(context, context.script().commands);
  check_exec(context, context.script().written_commands);
  check_races(context);
  check_visible_variables(context);
}

}  // namespace ddl::templates
