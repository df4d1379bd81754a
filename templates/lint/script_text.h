// A parsed job script: its directives, its commands, and its srun commands.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "templates/lint/shell_commands.h"
#include "templates/lint/shell_variables.h"
#include "templates/lint/slurm_options.h"

namespace ddl::templates {

/// One srun.
struct ScriptStep {
  int line = 0;
  std::vector<ShellAssignment> environment;  ///< in front of it
  std::vector<SlurmOption> options;
  std::vector<std::string> program;  ///< what it starts, with arguments
  std::vector<std::string> expands;  ///< names of the variables that the script's shell replaces in its words
  std::size_t command = 0;           ///< of ScriptText::commands
};

/// A line that sbatch reads as a directive.
struct ScriptDirectiveLine {
  int line = 0;
  std::string text;                      ///< what follows #SBATCH, unchanged
  std::vector<std::string> not_options;  ///< its words that are neither options nor values
};

struct ScriptText {
  std::string shebang;  ///< the first line if it begins with #!, without that
  std::vector<SlurmOption> directives;
  std::vector<ScriptDirectiveLine> directive_lines;
  int first_command_line = 0;          ///< where sbatch stops reading directives; 0: nowhere
  std::vector<ShellComment> comments;  ///< all of them, directives too
  std::vector<ShellCommand>
      commands;  ///< with the variables in their words replaced, as far as these are certain
  /// The commands of shell scripts that it writes by here-documents, or passes to a shell.
  std::vector<ShellCommand> written_commands;
  /// Its own, also within if and for, and where a variable or an array has the srun; none from $(...).
  std::vector<ScriptStep> steps;
  /// Those of its own and of the written ones: NAME=, export, env and --export.
  ShellVariables variables;
  std::vector<BrokenContinuation> broken_continuations;  ///< its own and the written ones'
  int components = 1;                                    ///< of a heterogeneous job, each with its directives
  bool is_heterogeneous() const { return components > 1; }
};

/// Pure. Lines may end with "\r\n". Accepts any text, and omits what it cannot parse.
ScriptText read_script(std::string_view text);

}  // namespace ddl::templates
