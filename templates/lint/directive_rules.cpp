// Rules for the text that sbatch reads: the first line, line ends, comments that look like directives, and the values
// of #SBATCH directives.
#include <algorithm>

#include "base/text.h"
#include "templates/cluster/slurm_values.h"
#include "templates/lint/rules.h"

namespace ddl::templates {
namespace {

constexpr std::string_view kSbatch = "#SBATCH";

bool is_blank(char c) { return c == ' ' || c == '\t'; }

std::string_view without_blanks(std::string_view text) {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  return text;
}

void check_first_line(LintContext& context) {
  if (context.raw().starts_with("#!")) return;
  context.report("no-interpreter", 1,
                 "the script does not begin with #! and its interpreter, and sbatch refuses it; "
                 "write #!/bin/bash as its first line");
}

void check_line_ends(LintContext& context) {
  const std::size_t at = context.raw().find("\r\n");
  if (at == std::string_view::npos) return;
  const int line = 1 + std::count(context.raw().begin(), context.raw().begin() + at, '\n');
  context.report(
      "dos-line-ends", line,
      "this line ends as on DOS, in \\r\\n, and sbatch refuses the script; convert it with dos2unix, "
      "or with sed -i 's/\\r$//'");
}

/// A comment that was meant to be a directive: its first word has the letters of SBATCH, and an option follows.
bool is_almost_directive(std::string_view comment) {
  comment = without_blanks(comment.substr(1));
  const std::size_t end = comment.find_first_of(" \t-\\");
  if (end == std::string_view::npos || !without_blanks(comment.substr(end)).starts_with('-')) return false;
  const std::string word = in_upper_case(comment.substr(0, end));
  return std::is_permutation(word.begin(), word.end(), kSbatch.begin() + 1, kSbatch.end());
}

void check_comments(LintContext& context) {
  const ScriptText& script = context.script();
  for (const ShellComment& comment : script.comments) {
    const bool has_magic = comment.text.starts_with(kSbatch);
    const bool is_late = script.first_command_line != 0 && comment.line > script.first_command_line;
    if (is_late) {
      const bool asks = has_magic && without_blanks(comment.text.substr(kSbatch.size())).starts_with('-');
      if (asks && !comment.indented) {
        context.report("directive-not-read", comment.line,
                       "sbatch stops reading directives at the first command, on line " +
                           std::to_string(script.first_command_line) + "; move this line in front of it");
      }
    } else if ((comment.indented || !has_magic) && is_almost_directive(comment.text)) {
      context.report("directive-misspelt", comment.line,
                     "sbatch takes this line for a comment; begin it with #SBATCH, in capitals, at the "
                     "beginning of the line and without a blank inside, or with ## if it is to be a comment");
    }
  }
}

void check_directive_lines(LintContext& context) {
  for (const ScriptDirectiveLine& line : context.script().directive_lines) {
    if (line.text.starts_with('-')) {
      context.report("directive-misspelt", line.line,
                     "no blank separates #SBATCH from the option: sbatch reads it all the same, which its "
                     "documentation does not promise; write #SBATCH " +
                         std::string(trim(line.text)));
    } else if (without_blanks(line.text).starts_with("\\-")) {
      context.report("directive-misspelt", line.line,
                     "the backslash in front of the option comes from a document that this was copied from: "
                     "sbatch ignores it, but in front of $, # or a quote it changes what commands do; remove "
                     "all that the document has added");
    } else if (!line.not_options.empty()) {
      context.report(
          "directive-misspelt", line.line,
          "'" + line.not_options.front() +
              "' is not an option, and sbatch refuses the script; options begin with two hyphens, which "
              "are not the dashes that text programs make of them");
    }
  }
}

void check_expansions(LintContext& context) {
  int last = 0;
  for (const SlurmOption& option : context.script().directives) {
    const std::string& value = option.value;
    const bool expands = value.find_first_of("$`") != std::string::npos || value.starts_with('~');
    if (!expands || option.line == last) continue;
    last = option.line;
    context.report("variable-in-directive", option.line,
                   "sbatch takes '" + value + "' of " + option.name +
                       " literally, since no shell reads a directive; write its value, one of "
                       "sbatch's own patterns such as %j, or give the option on sbatch's command line");
  }
}

}  // namespace

void check_form(LintContext& context) {
  check_first_line(context);
  check_line_ends(context);
  check_comments(context);
  check_directive_lines(context);
  check_expansions(context);
}

namespace {

std::string listed(const std::vector<std::string_view>& names) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i)
    text += (i == 0 ? "" : i + 1 == names.size() ? " or " : ", ") + std::string(names[i]);
  return text;
}

/// A name that is similar to no option may be an option of a site's plugin: it is not reported.
void check_names(LintContext& context, const std::vector<SlurmOption>& options, SlurmProgram program) {
  const bool by_sbatch = program == SlurmProgram::kSbatch;
  const std::string refuses = by_sbatch ? "sbatch refuses the script" : "srun starts nothing";
  for (const SlurmOption& option : options) {
    if (!option.name.starts_with("--")) continue;
    const OptionNameCheck check = check_option_name(option.name, program);
    if (check.name == OptionName::kUnknown && !check.close.empty()) {
      context.report(
          "unknown-option", option.line,
          "there is no option " + option.name + ", and " + refuses + "; write " + listed(check.close));
    } else if (check.name == OptionName::kAmbiguous) {
      context.report("unknown-option", option.line,
                     option.name + " may mean " + listed(check.close) + ", and " + refuses +
                         "; write the option in full");
    } else if (check.name == OptionName::kOtherPrograms) {
      context.report(
          "unknown-option", option.line,
          by_sbatch
              ? option.name + " is an option of srun, and sbatch refuses the script; move it to the srun"
              : option.name + " is an option of sbatch, and srun starts nothing; make it a directive");
    }
  }
}

/// Not for what a variable says, or a plugin of the site's may understand.
void check_times(LintContext& context, const std::vector<SlurmOption>& options) {
  for (const SlurmOption& option : options) {
    if (option.name != "--time" && option.name != "--time-min") continue;
    const std::string& value = option.value;
    std::string word;
    for (const char c : value) word += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    const bool is_time = slurm_minutes(value) || word == "infinite" || word == "unlimited" || value == "-1";
    // Days with a hyphen and no hours are a time too.
    if (is_time || value.ends_with('-') || value.find_first_of("$`") != std::string::npos) continue;
    context.report("bad-time", option.line,
                   "'" + value + "' of " + option.name +
                       " is not a time, and Slurm refuses the job; write minutes (30), 30:00, 2:00:00, 1-12 "
                       "or 1-12:00:00");
  }
}

/// Not for what a variable says.
void check_values(LintContext& context, const std::vector<SlurmOption>& options) {
  for (const SlurmOption& option : options) {
    if (option.value.empty() || option.value.find_first_of("$`~") != std::string::npos) continue;
    if (const std::string wrong = wrong_slurm_value(option.name, option.value); !wrong.empty())
      context.report("bad-value", option.line, option.name + ": " + wrong + "; Slurm refuses the job");
  }
}

/// Reports two different requests for memory.
void check_memory(LintContext& context, const std::vector<SlurmOption>& options) {
  const SlurmOption* first = nullptr;
  for (const SlurmOption& option : options) {
    if (option.name != "--mem" && option.name != "--mem-per-cpu" && option.name != "--mem-per-gpu") continue;
    if (first == nullptr) first = &option;
    if (first->name == option.name) continue;
    context.report(
        "mem-twice", option.line,
        option.name + " is used together with " + first->name + on_line(first->line, option.line) +
            ", and Slurm takes only one of --mem, --mem-per-cpu and --mem-per-gpu; remove one of them");
    return;
  }
}

/// Where the ranks get it. With B: they do not.
void check_signal(LintContext& context, const SlurmOption* option) {
  if (option == nullptr || !shells_signal(option->value).empty()) return;
  const std::string_view signal = signal_of(option->value);
  if (signal != "USR1" && signal != "10") return;
  context.report(
      "signal-usr1", option->line,
      "NCCL may catch SIGUSR1, and then the program does not get it; let the program wait for SIGUSR2, and "
      "write USR2 here");
}

void check_requeue(LintContext& context) {
  const SlurmOption* requeue = context.directive("--requeue");
  const SlurmOption* mode = context.directive("--open-mode");
  if (requeue == nullptr || (mode != nullptr && mode->value.starts_with('a'))) return;
  context.report(
      "requeue-open-mode", requeue->line,
      "a job that is started again empties its output file first, unless the site has changed Slurm's "
      "default; add #SBATCH --open-mode=append");
}

}  // namespace

void check_directives(LintContext& context) {
  const ScriptText& script = context.script();
  if (!script.is_heterogeneous()) check_memory(context, script.directives);
  check_signal(context, context.directive("--signal"));
  check_requeue(context);
  check_names(context, script.directives, SlurmProgram::kSbatch);
  check_times(context, script.directives);
  check_values(context, script.directives);
  for (const ScriptStep& step : script.steps) {
    check_memory(context, step.options);
    check_signal(context, find_option(step.options, "--signal"));
    check_names(context, step.options, SlurmProgram::kSrun);
    check_times(context, step.options);
  }
}

}  // namespace ddl::templates
