#include "templates/lint/script_text.h"

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <span>

#include "base/text.h"

namespace ddl::templates {
namespace {

constexpr std::string_view kMagic = "#SBATCH";

bool is_one_of(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

std::string_view base_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

bool is_shell(std::string_view word) {
  return is_one_of(base_name(word), {"sh", "bash", "zsh", "ksh", "dash"});
}

/// "NAME=value" of export's or env's words.
void add_assignment(std::string_view word, int line, std::vector<ShellAssignment>& assignments) {
  const std::size_t equals = word.find('=');
  if (equals == std::string_view::npos || equals == 0 || word[0] == '-') return;
  assignments.push_back({std::string(word.substr(0, equals)), std::string(word.substr(equals + 1)), line});
}

void add_assignments(const ShellCommand& command, std::vector<ShellAssignment>& assignments) {
  assignments.insert(assignments.end(), command.assignments.begin(), command.assignments.end());
  if (command.words.empty()) return;
  const std::string& name = command.words.front().text;
  const bool ends_with_program = name == "env" || name == "exec";
  if (!ends_with_program && !is_one_of(name, {"export", "declare", "typeset", "readonly", "local"})) return;
  for (std::size_t i = 1; i < command.words.size(); ++i) {
    const std::string& word = command.words[i].text;
    const bool assigns = word.find('=') != std::string::npos || word.starts_with('-') || word == "env";
    if (ends_with_program && !assigns) return;
    add_assignment(word, command.line, assignments);
  }
}

/// --export=ALL,NAME=value
void add_exported(const std::vector<SlurmOption>& options, std::vector<ShellAssignment>& assignments) {
  for (const SlurmOption& option : options) {
    if (option.name != "--export") continue;
    for (const std::string_view part : split(option.value, ','))
      add_assignment(part, option.line, assignments);
  }
}

/// The position of srun in the command, or its number of words.
std::size_t find_srun(const ShellCommand& command) {
  for (std::size_t i = 0; i < command.words.size(); ++i) {
    const std::string& word = command.words[i].text;
    if (base_name(word) == "srun") return i;
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
  for (std::size_t i = 0; i < at; ++i) add_assignment(command.words[i].text, command.line, step.environment);
  std::vector<std::string> words;
  for (std::size_t i = at + 1; i < command.words.size(); ++i) {
    words.push_back(command.words[i].text);
    step.expands.insert(step.expands.end(), command.words[i].expands.begin(), command.words[i].expands.end());
  }
  SlurmOptions read = read_slurm_options(words, SlurmProgram::kSrun, command.line);
  step.options = std::move(read.options);
  step.program.assign(words.begin() + static_cast<std::ptrdiff_t>(read.used), words.end());
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
  for (const ShellCommand& command : script.commands) {
    add_assignments(command, script.assignments);
    add_step(command, static_cast<std::size_t>(&command - script.commands.data()), script.steps);
    if (!holds_shell_script(command)) continue;
    for (ShellCommand& written : read_shell(command.here_document, command.here_document_line).commands) {
      add_assignments(written, script.assignments);
      script.written_commands.push_back(std::move(written));
    }
  }
  for (const ScriptStep& step : script.steps) add_exported(step.options, script.assignments);
  return script;
}

}  // namespace ddl::templates
