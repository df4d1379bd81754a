#include "templates/lint/script_text.h"

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <optional>
#include <span>
#include <utility>

#include "base/text.h"

namespace ddl::templates {
namespace {

constexpr std::string_view kMagic = "#SBATCH";

bool is_one_of(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

/// kept: the command's number, if it runs exactly once and belongs to the script itself.
void add_assignments(const ShellCommand& command, std::optional<std::size_t> kept,
                     std::vector<ScriptAssignment>& assignments) {
  // In front of a program an assignment holds only for it.
  const auto own = command.words.empty() ? kept : std::nullopt;
  for (const ShellAssignment& one : command.assignments) assignments.push_back({one, own});
  if (command.words.empty()) return;
  const std::string& name = command.words.front().text;
  const bool ends_with_program = name == "env" || name == "exec";
  if (!ends_with_program && !is_one_of(name, {"export", "declare", "typeset", "readonly", "local"})) return;
  for (std::size_t i = 1; i < command.words.size(); ++i) {
    const std::string& word = command.words[i].text;
    const bool assigns = word.find('=') != std::string::npos || word.starts_with('-') || word == "env";
    if (ends_with_program && !assigns) return;
    if (auto one = assignment_in(command.words[i], command.line))
      assignments.push_back({*std::move(one), ends_with_program ? std::nullopt : kept});
  }
}

/// --export=ALL,NAME=value
void add_exported(const std::vector<SlurmOption>& options, std::vector<ScriptAssignment>& assignments) {
  for (const SlurmOption& option : options) {
    if (option.name != "--export") continue;
    for (const std::string_view part : split(option.value, ',')) {
      if (auto one = assignment_in({std::string(part), false, {}}, option.line))
        assignments.push_back({*std::move(one), std::nullopt});
    }
  }
}

/// The position of srun in the command, or its number of words.
std::size_t find_srun(const ShellCommand& command) {
  for (std::size_t i = 0; i < command.words.size(); ++i) {
    const std::string& word = command.words[i].text;
    if (file_name_of(word) == "srun") return i;
    const bool passes_on = is_one_of(word, {"exec", "nohup", "time", "command", "env"}) ||
                           (i > 0 && word.find('=') != std::string::npos && !word.starts_with('-'));
    if (!passes_on) break;
  }
  return command.words.size();
}

void add_step(const ShellCommand& command, std::size_t index, std::vector<ScriptStep>& steps) {
  const std::size_t at = find_srun(command);
  if (at == command.words.size()) return;
  ScriptStep step;
  step.line = command.line;
  step.command = index;
  step.environment = command.assignments;
  for (std::size_t i = 0; i < at; ++i) {
    if (auto one = assignment_in(command.words[i], command.line)) step.environment.push_back(*std::move(one));
  }
  std::vector<std::string> words;
  for (std::size_t i = at + 1; i < command.words.size(); ++i) {
    words.push_back(command.words[i].text);
    step.expands.insert(step.expands.end(), command.words[i].expands.begin(), command.words[i].expands.end());
  }
  SlurmOptions read = read_slurm_options(words, SlurmProgram::kSrun, command.line);
  step.options = std::move(read.options);
  step.program.assign(words.begin() + read.used, words.end());
  steps.push_back(std::move(step));
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
      script.is_heterogeneous = true;
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
  add_exported(script.directives, script.assignments);
  for (std::size_t i = 0; i < script.commands.size(); ++i) {
    const ShellCommand& command = script.commands[i];
    add_assignments(command, command.runs_once ? std::optional(i) : std::nullopt, script.assignments);
    add_step(command, i, script.steps);
    if (!holds_shell_script(command)) continue;
    for (ShellCommand& written : read_shell(command.here_document, command.here_document_line).commands) {
      add_assignments(written, std::nullopt, script.assignments);
      script.written_commands.push_back(std::move(written));
    }
  }
  for (const ScriptStep& step : script.steps) add_exported(step.options, script.assignments);
  return script;
}

}  // namespace ddl::templates
