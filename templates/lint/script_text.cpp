#include "templates/lint/script_text.h"

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <iterator>
#include <optional>
#include <span>
#include <utility>

#include "base/text.h"
#include "templates/lint/started_programs.h"

namespace ddl::templates {
namespace {

constexpr std::string_view kMagic = "#SBATCH";

bool is_one_of(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

/// kept: the command's number, if it runs exactly once and belongs to the script itself.
void add_assignments(const ShellCommand& command, std::optional<std::size_t> kept,
                     ShellVariables& variables) {
  // In front of a program an assignment holds only for it.
  const auto own = command.words.empty() ? kept : std::nullopt;
  for (const ShellAssignment& one : command.assignments) variables.add({one, own});
  if (command.words.empty()) return;
  const std::string& name = command.words.front().text;
  const bool ends_with_program = name == "env" || name == "exec";
  if (!ends_with_program && !is_one_of(name, {"export", "declare", "typeset", "readonly", "local"})) return;
  for (std::size_t i = 1; i < command.words.size(); ++i) {
    const std::string& word = command.words[i].text;
    const bool assigns = word.find('=') != std::string::npos || word.starts_with('-') || word == "env";
    if (ends_with_program && !assigns) return;
    if (auto one = assignment_in(command.words[i], command.line))
      variables.add({*std::move(one), ends_with_program ? std::nullopt : kept});
  }
}

/// --export=ALL,NAME=value
void add_exported(const std::vector<SlurmOption>& options, ShellVariables& variables) {
  for (const SlurmOption& option : options) {
    if (option.name != "--export") continue;
    for (const std::string_view part : split(option.value, ',')) {
      if (auto one = assignment_in({std::string(part), false, {}}, option.line))
        variables.add({*std::move(one), std::nullopt});
    }
  }
}

void add_step(const ShellCommand& command, std::size_t index, std::vector<ScriptStep>& steps) {
  const std::vector<std::string> texts = texts_of(command.words);
  const Words words = without_prefixes(texts);
  if (words.empty() || file_name_of(words.front()) != "srun") return;
  const std::size_t at = texts.size() - words.size();
  ScriptStep step;
  step.line = command.line;
  step.command = index;
  step.environment = command.assignments;
  for (std::size_t i = 0; i < at; ++i) {
    if (auto one = assignment_in(command.words[i], command.line)) step.environment.push_back(*std::move(one));
  }
  for (std::size_t i = at + 1; i < command.words.size(); ++i)
    step.expands.insert(step.expands.end(), command.words[i].expands.begin(), command.words[i].expands.end());
  const Words behind = words.subspan(1);
  SlurmOptions read = read_slurm_options(behind, SlurmProgram::kSrun, command.line);
  step.options = std::move(read.options);
  step.program.assign(behind.begin() + read.used, behind.end());
  steps.push_back(std::move(step));
}

/// Puts the command that eval runs in its place, if it is one and its text is certain.
void replace_eval(ShellCommand& command) {
  if (!command.is_named("eval") || command.words.size() < 2) return;
  std::string text;
  for (std::size_t i = 1; i < command.words.size(); ++i) text += command.words[i].text + " ";
  std::vector<ShellCommand> inner = read_shell(text, command.line).commands;
  if (inner.size() != 1) return;
  command.words = std::move(inner.front().words);
  command.in_background = command.in_background || inner.front().in_background;
}

/// Whether the body is a shell script, by its first line, the shell that reads it, or the name of the file that it is
/// written to.
bool holds_shell_script(const ShellCommand& command) {
  if (command.here_document_line == 0) return false;
  const std::string_view body = command.here_document;
  if (body.starts_with("#!")) return body.substr(0, body.find('\n')).find("sh") != std::string_view::npos;
  return std::any_of(
             command.words.begin(), command.words.end(),
             [](const ShellWord& word) { return is_shell(word.text) || word.text.ends_with(".sh"); }) ||
         std::any_of(command.outputs.begin(), command.outputs.end(),
                     [](const std::string& file) { return file.ends_with(".sh"); });
}

void read_directive(std::string_view text, int line, ScriptText& script) {
  ScriptDirectiveLine directive{line, std::string(text), {}};
  const std::vector<std::string> words = split_directive(text);
  for (std::size_t i = 0; i < words.size(); ++i) {
    const SlurmOptions read = read_slurm_options(std::span(words).subspan(i), SlurmProgram::kSbatch, line);
    script.directives.insert(script.directives.end(), read.options.begin(), read.options.end());
    i += read.used;
    if (i == words.size()) break;
    if (is_one_of(words[i], {"hetjob", "packjob"}))
      ++script.components;
    else
      directive.not_options.push_back(words[i]);
  }
  script.directive_lines.push_back(std::move(directive));
}

/// Reads directives as sbatch does: line by line, up to the first line that is neither blank nor a comment.
void read_directives(std::string_view text, ScriptText& script) {
  int number = 0;
  for (const std::string_view line : split(text, '\n')) {
    ++number;
    const std::string_view content = trim(line);
    if (content.empty()) continue;
    if (content[0] != '#') {
      script.first_command_line = number;
      return;
    }
    if (line.starts_with(kMagic)) read_directive(line.substr(kMagic.size()), number, script);
  }
}

}  // namespace

ScriptText read_script(std::string_view text) {
  ScriptText script;
  if (text.starts_with("#!")) script.shebang = trim(text.substr(2, text.find('\n') - 2));
  read_directives(text, script);
  ShellText shell = read_shell(text);
  script.comments = std::move(shell.comments);
  script.commands = std::move(shell.commands);
  script.broken_continuations = std::move(shell.broken_continuations);
  add_exported(script.directives, script.variables);
  for (std::size_t i = 0; i < script.commands.size(); ++i) {
    const ShellCommand& command = script.commands[i];
    script.variables.add_setter(command);
    add_assignments(command, command.runs_once ? std::optional(i) : std::nullopt, script.variables);
    if (!holds_shell_script(command)) continue;
    ShellText written = read_shell(command.here_document, command.here_document_line);
    for (ShellCommand& one : written.commands) {
      add_assignments(one, std::nullopt, script.variables);
      script.written_commands.push_back(std::move(one));
    }
    std::move(written.broken_continuations.begin(), written.broken_continuations.end(),
              std::back_inserter(script.broken_continuations));
  }
  // A function may use what is set behind it, and so may any command what a later one sets otherwise.
  for (std::size_t i = 0; i < script.commands.size(); ++i) {
    ShellCommand& command = script.commands[i];
    const auto place = command.in_function ? std::nullopt : std::optional(i);
    command.words = script.variables.expanded_words(command.words, place);
    replace_eval(command);
    add_step(command, i, script.steps);
  }
  for (const ScriptStep& step : script.steps) add_exported(step.options, script.variables);
  return script;
}

}  // namespace ddl::templates
