#include <algorithm>
#include <array>
#include <set>

#include "templates/lint/rules.h"

namespace ddl::templates {
namespace {

constexpr std::string_view kExecStar =
    "exec with $* or an unquoted $@ parts arguments at blanks and loses their quotes; write exec \"$@\"";

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

/// The path below the job's directory; "" where it may be elsewhere, or may have something of the job in it.
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

/// A change to where a variable leads, which may be a directory of the job's own.
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
  context.report("two-visible-variables", std::max(rocr->line, hip->line),
                 std::string(rocr_is_later ? rocr->name : hip->name) + " is set beside " +
                     (rocr_is_later ? hip->name : rocr->name) + on_line(std::min(rocr->line, hip->line), 0) +
                     ": ROCR chooses first, and HIP then counts only what is left, from 0; set one of them");
}

}  // namespace

void check_wrappers(LintContext& context) {
  check_exec(context, context.script().commands);
  check_exec(context, context.script().written_commands);
  check_races(context);
  check_visible_variables(context);
}

}  // namespace ddl::templates
