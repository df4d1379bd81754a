// Rules for how the script starts its program: on which nodes, how often, with which variables and signals, and
// through wrapper scripts that the job writes for srun.
#include <algorithm>
#include <array>
#include <set>
#include <span>

#include "base/text.h"
#include "templates/lint/rules.h"

namespace ddl::templates {
namespace {

using Names = std::span<const std::string_view>;

bool is_any_of(Names names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::string_view file_name_of(std::string_view path) { return path.substr(path.rfind('/') + 1); }

/// Variables that srun sets for each task. In the batch script they have the values of its first task, or are unset.
constexpr std::array<std::string_view, 12> kTaskVariables = {
    "SLURM_LOCALID", "SLURM_PROCID",      "SLURM_NODEID",         "SLURM_TASK_PID",
    "PMI_RANK",      "PMIX_RANK",         "PMI_LOCAL_RANK",       "MPI_LOCALRANKID",
    "PALS_RANKID",   "PALS_LOCAL_RANKID", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK"};

/// Whether the script is a job's own. A script without directives that takes arguments is started by another script,
/// perhaps for each task.
bool is_jobs_own(const LintContext& context) {
  constexpr std::array<std::string_view, 5> kArguments = {"$1", "${1", "$@", "${@", "$*"};
  return !context.script().directive_lines.empty() ||
         std::none_of(kArguments.begin(), kArguments.end(), [&](std::string_view one) {
           return context.raw().find(one) != std::string_view::npos;
         });
}

std::string early(const std::string& name) {
  return "the script's own shell replaces $" + name + ", once and for all ranks: ";
}

void check_task_variables(LintContext& context) {
  for (const ShellCommand& command : context.script().commands) {
    const bool is_for_all = is_jobs_own(context) || !context.script().steps.empty();
    if (!is_for_all) break;
    for (const ShellExpansion& one : command.here_expansions) {
      if (!is_any_of(kTaskVariables, one.name)) continue;
      context.report("task-variable-expanded", one.line,
                     early(one.name) + "write \\$" + one.name +
                         ", or quote the word behind <<, so that each rank does it");
      break;
    }
  }
  for (const ScriptStep& step : context.script().steps) {
    const auto found = std::find_if(step.expands.begin(), step.expands.end(),
                                    [](const std::string& name) { return is_any_of(kTaskVariables, name); });
    if (found == step.expands.end()) continue;
    context.report("task-variable-expanded", step.line,
                   early(*found) + "let each rank do it, as in srun bash -c '... $" + *found + " ...'");
  }
}

/// A ddlrun that only reports something about the node, and starts no ranks, may be a task.
void check_ddlrun(LintContext& context) {
  constexpr std::array<std::string_view, 7> kQuestions = {"--show-", "--check-", "--explain-", "--version",
                                                          "--help",  "--list-",  "--lint"};
  for (const ScriptStep& step : context.script().steps) {
    std::size_t at = 0;
    while (at < step.program.size() &&
           (step.program[at] == "env" || step.program[at].find('=') != std::string::npos))
      ++at;
    if (at == step.program.size() || file_name_of(step.program[at]) != "ddlrun") continue;
    const bool asks =
        std::any_of(step.program.begin() + static_cast<std::ptrdiff_t>(at), step.program.end(),
                    [&](const std::string& word) {
                      return std::any_of(kQuestions.begin(), kQuestions.end(),
                                         [&](std::string_view one) { return word.starts_with(one); });
                    });
    if (asks) continue;
    context.report("srun-ddlrun", step.line,
                   "srun starts a ddlrun for each task, and each of them starts all ranks; write ddlrun "
                   "without srun: it "
                   "finds the job's nodes by itself");
  }
}

/// The job ends with its script, and steps end with the job.
void check_background(LintContext& context) {
  constexpr std::array<std::string_view, 22> kQuick = {
      "echo", "printf", "date", "cd", "export", "unset", "rm", "mkdir", "true",  "touch", "ls",
      ":",    "exit",   "done", "fi", "esac",   "}",     "cp", "mv",    "chmod", "cat",   "hostname"};
  const ScriptText& script = context.script();
  const ScriptStep* last = nullptr;
  for (const ScriptStep& step : script.steps) {
    if (script.commands[step.command].in_background) last = &step;
  }
  if (last == nullptr || !is_jobs_own(context)) return;
  const bool only_quick =
      std::all_of(script.commands.begin() + static_cast<std::ptrdiff_t>(last->command) + 1,
                  script.commands.end(), [&](const ShellCommand& command) {
                    return !command.in_background &&
                           (command.words.empty() || is_any_of(kQuick, command.words.front().text));
                  });
  if (!only_quick) return;
  context.report(
      "background-without-wait", last->line,
      "this srun runs in the background, and nothing waits for it: the script ends, and with it the job and "
      "its steps; write wait as the last line");
}

bool starts_python(const ShellCommand& command) {
  constexpr std::array<std::string_view, 9> kBefore = {"exec",        "time",      "nohup", "env", "command",
                                                       "singularity", "apptainer", "nice",  "run"};
  for (const ShellWord& word : command.words) {
    const std::string_view name = file_name_of(word.text);
    if (name.starts_with("python")) return true;
    const bool goes_on = is_any_of(kBefore, name) || word.text.starts_with('-') ||
                         word.text.find('=') != std::string::npos || name.ends_with(".sif");
    if (!goes_on) return false;
  }
  return false;
}

/// Whether anything in it may start programs on other nodes. A script may do so, since its contents are unknown here.
bool may_launch(const ShellCommand& command) {
  if (!command.words.empty()) {
    const std::string& name = command.words.front().text;
    const bool is_script = name.ends_with(".sh") || name.starts_with("./");
    const bool starts_script =
        (command.is_named("bash") || command.is_named("sh")) && command.words.size() > 1;
    if (is_script || starts_script) return true;
  }
  constexpr std::array<std::string_view, 24> kLaunchers = {
      "srun", "mpirun", "mpiexec",   "ibrun",    "ddlrun",   "torchrun", "horovod", "accelerate",
      "ssh",  "pdsh",   "clush",     "prun",     "prterun",  "aprun",    "jsrun",   "launch",
      "ray",  "dask",   "deepspeed", "scontrol", "parallel", "spark",    "sbatch",  "$"};
  for (const ShellWord& word : command.words) {
    const bool is_first = &word == &command.words.front();
    const bool found = std::any_of(kLaunchers.begin(), kLaunchers.end(), [&](std::string_view one) {
      return one == "$" ? is_first && word.text.starts_with('$') : word.text.find(one) != std::string::npos;
    });
    if (found) return true;
  }
  return false;
}

void check_nodes(LintContext& context) {
  const ScriptText& script = context.script();
  const SlurmOption* option = context.directive("--nodes");
  if (option == nullptr || script.is_heterogeneous || !script.steps.empty()) return;
  const auto nodes = parse_integer(std::string_view(option->value).substr(0, option->value.find('-')));
  if (!nodes || *nodes < 2) return;
  const ShellCommand* python = nullptr;
  for (const ShellCommand& command : script.commands) {
    if (may_launch(command)) return;
    if (python == nullptr && starts_python(command)) python = &command;
  }
  if (python == nullptr) return;
  context.report(
      "nodes-without-launcher", python->line,
      "the job has " + option->value + " nodes" + on_line(option->line, python->line) +
          ", and only the first of them runs this: Slurm starts the script there and nothing elsewhere; "
          "write ddlrun or srun in front of it");
}

/// "USR1" of "B:USR1@60", "SIGUSR1" or "10"; "" where the ranks are meant.
std::string_view shells_signal(std::string_view value) {
  const std::size_t colon = value.find(':');
  if (colon == std::string_view::npos || value.substr(0, colon).find('B') == std::string_view::npos)
    return "";
  value = value.substr(colon + 1);
  value = value.substr(0, value.find('@'));
  if (value.starts_with("SIG")) value.remove_prefix(3);
  return value;
}

/// Whether the command catches the signal, or may do so: a signal named by a variable, or by number.
bool may_trap(const ShellCommand& command, std::string_view signal) {
  if (!command.is_named("trap")) return false;
  return std::any_of(command.words.begin() + 1, command.words.end(), [&](const ShellWord& word) {
    const std::string_view text = word.text;
    return text == signal || (text.starts_with("SIG") && text.substr(3) == signal) ||
           text.find('$') != std::string_view::npos || parse_integer(text);
  });
}

void check_shells_signal(LintContext& context) {
  const ScriptText& script = context.script();
  const SlurmOption* option = context.directive("--signal");
  const std::string_view signal = option != nullptr ? shells_signal(option->value) : "";
  if (signal.empty()) return;
  const auto any_command = [&](const auto& is_it) {
    return std::any_of(script.commands.begin(), script.commands.end(), is_it);
  };
  if (any_command([](const ShellCommand& one) { return one.is_named("exec") && one.words.size() > 1; }))
    return;
  const bool is_number = parse_integer(signal).has_value();
  const bool traps = any_command(
      [&](const ShellCommand& one) { return is_number ? one.is_named("trap") : may_trap(one, signal); });
  if (!traps) {
    context.report(
        "signal-to-shell", option->line,
        "with B: only the script's shell gets the signal, and is killed by it, and the job ends; write "
        "exec in front of "
        "the program, or a trap for " +
            std::string(signal) + "; or omit B:, so that the ranks get it");
    return;
  }
  const bool waits =
      any_command([](const ShellCommand& one) { return one.in_background || one.is_named("wait"); });
  if (waits || script.steps.empty()) return;
  context.report(
      "signal-to-shell", option->line,
      "bash runs its trap only when the srun in the foreground has ended, and with B: no other process gets "
      "the signal; write srun ... & and wait, or omit B:");
}

}  // namespace

void check_launches(LintContext& context) {
  check_task_variables(context);
  check_ddlrun(context);
  check_background(context);
  check_nodes(context);
  check_shells_signal(context);
}

namespace {

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
  const ShellAssignment* rocr = context.assignment("ROCR_VISIBLE_DEVICES");
  const ShellAssignment* hip = context.assignment("HIP_VISIBLE_DEVICES");
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
  check_exec(context, context.script().commands);
  check_exec(context, context.script().written_commands);
  check_races(context);
  check_visible_variables(context);
}

}  // namespace ddl::templates
