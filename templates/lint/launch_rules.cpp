// Rules for how the script starts its program: on which nodes, how often, and with which signals.
#include <algorithm>
#include <array>

#include "base/text.h"
#include "templates/cluster/slurm_values.h"
#include "templates/lint/rules.h"
#include "templates/lint/started_programs.h"

namespace ddl::templates {
namespace {

/// Whether a ddlrun starts ranks. One that only reports something about the node, or starts its ranks beside the task,
/// may be a task.
bool starts_ranks(Words words) {
  constexpr std::array<std::string_view, 7> kQuestions = {"--show-", "--check-", "--explain-", "--version",
                                                          "--help",  "--list-",  "--lint"};
  for (std::size_t i = 1; i < words.size(); ++i) {
    const bool asks = std::any_of(kQuestions.begin(), kQuestions.end(),
                                  [&](std::string_view one) { return words[i].starts_with(one); });
    const bool is_local = words[i] == "--launcher=local" ||
                          (words[i] == "--launcher" && i + 1 < words.size() && words[i + 1] == "local");
    if (asks || is_local) return false;
  }
  return true;
}

bool starts_ddlrun(Words words) {
  const auto programs = started_programs(words);
  return std::any_of(programs.begin(), programs.end(), [](const std::vector<std::string>& program) {
    return file_name_of(program.front()) == "ddlrun" && starts_ranks(program);
  });
}

void check_ddlrun(LintContext& context) {
  const auto report = [&](int line, const std::string& launcher, std::string_view of) {
    context.report("srun-ddlrun", line,
                   launcher + " starts a ddlrun for each " + std::string(of) +
                       ", and each of them starts all ranks; write ddlrun without " + launcher +
                       ": it finds the job's nodes by itself");
  };
  for (const ScriptStep& step : context.script().steps) {
    // A single task may be a ddlrun, and so may the shell in a terminal that --pty starts.
    const bool is_single =
        count_of(option_of(context, step, "--ntasks")) == 1 || find_option(step.options, "--pty") != nullptr;
    if (!is_single && starts_ddlrun(step.program)) report(step.line, "srun", "task");
  }
  for (const ShellCommand& command : context.script().commands) {
    const std::vector<std::string> texts = texts_of(command.words);
    const Words words = without_prefixes(texts);
    if (words.empty() || !is_mpirun(words.front())) continue;
    if (starts_ddlrun(program_of_mpirun(words.subspan(1))))
      report(command.line, std::string(file_name_of(words.front())), "rank");
  }
}

bool starts_python(const ShellCommand& command) {
  const auto programs = started_programs(texts_of(command.words));
  return std::any_of(programs.begin(), programs.end(), [](const std::vector<std::string>& program) {
    return file_name_of(program.front()).starts_with("python");
  });
}

/// The program of a command that starts ranks or trains a model; "" for others.
std::string rank_starter(const LintContext& context, const ShellCommand& command) {
  const std::vector<std::string> texts = texts_of(command.words);
  const Words words = without_prefixes(texts);
  if (words.empty()) return "";
  std::string name(file_name_of(words.front()));
  if (name == "srun" || name == "ddlrun" || name == "torchrun" || is_mpirun(name)) return name;
  // A script without directives may be one that starts a service.
  return starts_python(command) && !context.script().directive_lines.empty() ? "python" : "";
}

/// The job ends with its script, and all its processes end with the job.
void check_background(LintContext& context) {
  constexpr std::array<std::string_view, 23> kQuick = {
      "echo", "printf", "date", "cd",   "export", "unset", "rm", "mkdir", "true", "touch",    "ls",    ":",
      "exit", "done",   "fi",   "esac", "}",      "cp",    "mv", "chmod", "cat",  "hostname", "disown"};
  if (!is_jobs_own(context)) return;
  const std::vector<ShellCommand>& commands = context.script().commands;
  const auto last = std::find_if(commands.rbegin(), commands.rend(), [&](const ShellCommand& command) {
    return command.in_background && !rank_starter(context, command).empty();
  });
  if (last == commands.rend()) return;
  const bool only_quick = std::all_of(commands.rbegin(), last, [&](const ShellCommand& command) {
    return !command.in_background && (command.words.empty() || is_any_of(kQuick, command.words.front().text));
  });
  if (!only_quick) return;
  context.report(
      "background-without-wait", last->line,
      "this " + rank_starter(context, *last) +
          " runs in the background, and nothing waits for it: the script ends, and with it the job "
          "and all its processes; write wait as the last line");
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
  constexpr std::array<std::string_view, 32> kLaunchers = {"srun",
                                                           "mpirun",
                                                           "mpiexec",
                                                           "ibrun",
                                                           "ddlrun",
                                                           "torchrun",
                                                           "horovod",
                                                           "accelerate",
                                                           "ssh",
                                                           "pdsh",
                                                           "clush",
                                                           "prun",
                                                           "prterun",
                                                           "aprun",
                                                           "jsrun",
                                                           "launch",
                                                           "ray",
                                                           "dask",
                                                           "deepspeed",
                                                           "scontrol",
                                                           "parallel",
                                                           "spark",
                                                           "sbatch",
                                                           "scoop",
                                                           "hosts",
                                                           "hostfile",
                                                           "machinefile",
                                                           "nodelist",
                                                           "NODELIST",
                                                           "nodefile",
                                                           "torch.distributed",
                                                           "$"};
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
  if (option == nullptr || script.is_heterogeneous() || !script.steps.empty()) return;
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
  check_ddlrun(context);
  check_background(context);
  check_nodes(context);
  check_shells_signal(context);
}

}  // namespace ddl::templates
