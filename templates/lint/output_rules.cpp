// Rules for files, folders and variables that are not there when or where they are used.
#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "base/text.h"
#include "templates/lint/rules.h"
#include "templates/lint/started_programs.h"

namespace ddl::templates {
namespace {

/// A folder's path without the job's directory in front, up to the first part whose name is known only in the job.
std::string known_path(std::string_view path) {
  constexpr std::array<std::string_view, 5> kHere = {"./", "$PWD/", "${PWD}/", "$SLURM_SUBMIT_DIR/",
                                                     "${SLURM_SUBMIT_DIR}/"};
  for (const std::string_view here : kHere) {
    if (path.starts_with(here)) path.remove_prefix(here.size());
  }
  std::string known;
  for (const std::string_view part : split(path, '/')) {
    if (part.find_first_of("$%`*?{") != std::string_view::npos) break;
    if (part.empty() && !known.empty()) continue;
    known += std::string(part) + "/";
  }
  return known;
}

bool is_absolute(std::string_view path) { return path.starts_with('/'); }

/// Where the script makes a folder that the path of an output is in. Behind a cd a relative path is another one.
const ShellCommand* maker_of(const LintContext& context, const std::string& folder) {
  constexpr std::array<std::string_view, 5> kHere = {".", "$PWD", "${PWD}", "$SLURM_SUBMIT_DIR",
                                                     "${SLURM_SUBMIT_DIR}"};
  bool is_elsewhere = false;
  for (const ShellCommand& command : context.script().commands) {
    if ((command.is_named("cd") || command.is_named("pushd")) && command.words.size() > 1)
      is_elsewhere = is_elsewhere || !is_any_of(kHere, command.words[1].text);
    if (!command.is_named("mkdir")) continue;
    for (std::size_t i = 1; i < command.words.size(); ++i) {
      const std::string made = known_path(command.words[i].text);
      if (made.starts_with(folder) && (is_absolute(made) || !is_elsewhere)) return &command;
    }
  }
  return nullptr;
}

/// Whether it submits itself: then what it does before that is done in time.
bool submits_itself(const LintContext& context) {
  const auto& commands = context.script().commands;
  return std::any_of(commands.begin(), commands.end(), [](const ShellCommand& command) {
    return command.is_named("sbatch") &&
           std::any_of(command.words.begin(), command.words.end(), [](const ShellWord& word) {
             return word.text.find("$0") != std::string::npos ||
                    word.text.find("BASH_SOURCE") != std::string::npos;
           });
  });
}

void check_folder(LintContext& context, const SlurmOption* option) {
  if (option == nullptr || is_placeholder(*option)) return;
  const std::size_t end = option->value.rfind('/');
  if (end == std::string::npos || end == 0) return;
  const std::string folder = known_path(option->value.substr(0, end));
  const ShellCommand* maker = folder.empty() || folder == "/" ? nullptr : maker_of(context, folder);
  if (maker == nullptr || submits_itself(context)) return;
  context.report(
      "output-folder", option->line,
      "Slurm opens " + option->value + " before the script runs, and makes no folder for it: mkdir on line " +
          std::to_string(maker->line) +
          " is too late, and without the folder the job fails and leaves no output; make it before sbatch");
}

/// Whether each task of an array has a file of its own by this name.
bool is_own_of_task(std::string_view file) {
  if (file == "/dev/null" || file.find_first_of("$`\\") != std::string_view::npos) return true;
  for (std::size_t i = 0; i + 1 < file.size(); ++i) {
    if (file[i] != '%') continue;
    std::size_t letter = i + 1;
    while (letter < file.size() && file[letter] >= '0' && file[letter] <= '9') ++letter;
    if (letter < file.size() && std::string_view("ajJ").find(file[letter]) != std::string_view::npos)
      return true;
    i = letter;
  }
  return false;
}

void check_array_output(LintContext& context) {
  const SlurmOption* array = context.directive("--array");
  if (array == nullptr || parse_integer(array->value)) return;
  for (const std::string_view name : {"--output", "--error"}) {
    const SlurmOption* option = context.directive(name);
    if (option == nullptr || is_own_of_task(option->value)) continue;
    context.report("array-output", option->line,
                   "all tasks of the array" + on_line(array->line, option->line) +
                       " write to the same file " + option->value + "; put %a into its name, or %A_%a");
  }
}

/// Variables that Slurm sets only where the option is given.
constexpr std::array<std::pair<std::string_view, std::string_view>, 7> kOfOptions = {
    {{"SLURM_CPUS_PER_TASK", "--cpus-per-task"},
     {"SLURM_NTASKS_PER_NODE", "--ntasks-per-node"},
     {"SLURM_GPUS_PER_NODE", "--gpus-per-node"},
     {"SLURM_GPUS_PER_TASK", "--gpus-per-task"},
     {"SLURM_GPUS", "--gpus"},
     {"SLURM_CPUS_PER_GPU", "--cpus-per-gpu"},
     {"SLURM_NTASKS_PER_GPU", "--ntasks-per-gpu"}}};

/// Whether the shell puts the variable's value into the text, without another one for where it is unset.
bool uses_plainly(std::string_view name, std::string_view text, const std::vector<std::string>& expands) {
  if (std::find(expands.begin(), expands.end(), name) == expands.end()) return false;
  for (const std::string_view form : {"{", "{#"}) {
    const std::size_t at = text.find(std::string(form) + std::string(name));
    const std::size_t behind = at + form.size() + name.size();
    if (at != std::string_view::npos && behind < text.size() && text[behind] != '}') return false;
  }
  return true;
}

void check_unset_variable(LintContext& context, std::string_view name, std::string_view option) {
  constexpr std::array<std::string_view, 4> kTests = {"[", "[[", "test", ":"};
  const auto& variables = context.variables();
  if (context.directive(option) != nullptr || variables.first(name) != nullptr) return;
  int line = 0;
  for (const ShellCommand& command : context.script().commands) {
    const bool tests = !command.words.empty() && is_any_of(kTests, command.words.front().text);
    const auto note = [&](std::string_view text, const std::vector<std::string>& expands, int at) {
      if (line == 0 && uses_plainly(name, text, expands)) line = at;
    };
    for (const ShellAssignment& one : command.assignments) note(one.value, one.expands, one.line);
    for (const ShellWord& word : command.words) {
      const bool is_named = std::find(word.expands.begin(), word.expands.end(), name) != word.expands.end();
      // The script itself asks whether it is set.
      if (tests && is_named) return;
      note(word.text, word.expands, command.line);
    }
  }
  if (line == 0) return;
  context.report("variable-without-option", line,
                 "Slurm sets " + std::string(name) + " only where " + std::string(option) +
                     " is given, which no directive does: it is empty here; add #SBATCH " +
                     std::string(option) + ", or write ${" + std::string(name) + ":-1}");
}

void check_unset_variables(LintContext& context) {
  const ScriptText& script = context.script();
  if (script.directive_lines.empty() || script.is_heterogeneous() ||
      context.directive("--tres-per-task") != nullptr)
    return;
  for (const auto& [name, option] : kOfOptions) check_unset_variable(context, name, option);
}

/// Whether the value has a $(mktemp ...) below the node's own /tmp.
bool is_made_on_node(std::string_view value) {
  const std::size_t at = value.find("mktemp");
  if (at == std::string_view::npos || at == 0) return false;
  const std::string_view before = value.substr(0, at);
  if (!before.ends_with("$(") && !before.ends_with('`')) return false;
  const std::string_view arguments = value.substr(at, value.find_first_of(")`", at) - at);
  for (const std::string_view word : split(arguments, ' ')) {
    const std::string_view path =
        word.substr(word.starts_with("--") ? std::min(word.find('=') + 1, word.size()) : 0);
    const bool is_path = path.find_first_of("/$") != std::string_view::npos;
    const bool is_local = path.starts_with("/tmp") || path.starts_with("/dev/shm") ||
                          path.starts_with("/var/tmp") || path.starts_with("$TMPDIR") ||
                          path.starts_with("${TMPDIR");
    if (is_path && !is_local) return false;
  }
  return true;
}

/// The names that the script exports.
std::set<std::string_view> exported_names(const ScriptText& script) {
  std::set<std::string_view> names;
  for (const ShellCommand& command : script.commands) {
    if (!command.is_named("export")) continue;
    for (const ShellWord& word : command.words)
      names.insert(std::string_view(word.text).substr(0, word.text.find('=')));
  }
  return names;
}

void check_node_folders(LintContext& context) {
  const ScriptText& script = context.script();
  if (nodes_of_job(context) < 2 || script.steps.empty()) return;
  const std::set<std::string_view> exported = exported_names(script);
  for (const ScriptAssignment& one : script.variables.all()) {
    if (!one.command || !is_made_on_node(one.value)) continue;
    bool is_used = false;
    for (const ScriptStep& step : script.steps) {
      // The script makes it on the other nodes itself.
      if (!step.program.empty() && step.program.front() == "mkdir") return;
      const SlurmOption* nodes = find_option(step.options, "--nodes");
      const bool is_on_first = count_of(nodes) == 1 || count_of(find_option(step.options, "--ntasks")) == 1;
      const bool names_it =
          std::find(step.expands.begin(), step.expands.end(), one.name) != step.expands.end();
      is_used = is_used ||
                (step.command > *one.command && !is_on_first && (names_it || exported.contains(one.name)));
    }
    if (!is_used) continue;
    context.report(
        "folder-of-one-node", one.line,
        "mktemp makes this on the first node only, and ranks on the others do not have what " + one.name +
            " names; make it by srun --ntasks-per-node=1 mkdir -p on each node, or in a folder that all "
            "nodes share");
  }
}

}  // namespace

void check_outputs(LintContext& context) {
  check_folder(context, context.directive("--output"));
  const SlurmOption* error = context.directive("--error");
  const SlurmOption* output = context.directive("--output");
  const bool is_same =
      error != nullptr && output != nullptr &&
      error->value.substr(0, error->value.rfind('/')) == output->value.substr(0, output->value.rfind('/'));
  if (!is_same) check_folder(context, error);
  check_array_output(context);
  check_unset_variables(context);
  check_node_folders(context);
}

}  // namespace ddl::templates
