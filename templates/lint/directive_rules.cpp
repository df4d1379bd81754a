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
  if (context.raw().starts_with(std::string(kByteOrderMark) + "#!")) {
    context.report(
        "no-interpreter", 1,
        "a byte order mark, which an editor has written and does not show, is in front of #!, and sbatch "
        "refuses the script; remove it with sed -i '1s/^\\xEF\\xBB\\xBF//'");
    return;
  }
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

/// The options of a comment whose first word has the letters of SBATCH, if nothing but options and their values
/// follow: with other words it is a sentence, or a command for the shell; empty otherwise.
std::vector<SlurmOption> options_in_comment(std::string_view comment) {
  const std::string_view text = without_blanks(comment.substr(1));
  const std::size_t end = text.find_first_of(" \t-\\");
  if (end == std::string_view::npos || !without_blanks(text.substr(end)).starts_with('-')) return {};
  const std::string word = in_upper_case(text.substr(0, end));
  if (!std::is_permutation(word.begin(), word.end(), kSbatch.begin() + 1, kSbatch.end())) return {};
  // A command in small letters is set off from the text of the comment, or goes on in the next line.
  const bool is_command =
      text.starts_with("sbatch") && (comment.size() - text.size() > 2 || trim(text).ends_with('\\'));
  const std::vector<std::string> words = split_directive(text.substr(end));
  SlurmOptions read = read_slurm_options(words, SlurmProgram::kSbatch, 0);
  const bool has_wrapped = find_option(read.options, "--wrap") != nullptr;
  if (is_command || read.used < words.size() || has_wrapped) return {};
  return std::move(read.options);
}

/// Whether the comment keeps another value of an option that a directive has: then it is one on purpose.
bool keeps_alternative(const LintContext& context, const std::vector<SlurmOption>& options) {
  return std::any_of(options.begin(), options.end(),
                     [&](const SlurmOption& option) { return context.directive(option.name) != nullptr; });
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
    } else if (comment.indented || !has_magic) {
      const std::vector<SlurmOption> options = options_in_comment(comment.text);
      if (options.empty() || keeps_alternative(context, options)) continue;
      context.report("directive-misspelt", comment.line,
                     "sbatch takes this line for a comment; begin it with #SBATCH, in capitals, at the "
                     "beginning of the line and without a blank inside, or with ## if it is to be a comment");
    }
  }
}

/// "--account=<your account>", which is reported as such.
bool is_one_placeholder(std::string_view text) {
  const std::size_t opens = text.find('<');
  return opens != std::string_view::npos && text.find('>', opens) != std::string_view::npos;
}

/// A word that is neither an option nor the value of one.
void check_stray_word(LintContext& context, const ScriptDirectiveLine& line) {
  const std::string& word = line.not_options.front();
  const auto& directives = context.script().directives;
  const auto cut = std::find_if(directives.begin(), directives.end(), [&](const SlurmOption& option) {
    const std::string& value = option.value;
    return option.line == line.line &&
           (value.empty() || value == "=" || value.ends_with(',') || word[0] == ',');
  });
  const bool takes_word =
      cut != directives.end() && !word.starts_with('-') &&
      line.text.find(word) > line.text.find(cut->name.substr(cut->name.find_first_not_of('-')));
  if (takes_word && (cut->value != "" || line.text.find("= ") != std::string::npos)) {
    const std::string joined = (cut->value == "=" ? "" : cut->value) + word;
    context.report("directive-misspelt", line.line,
                   "a blank ends the value of " + cut->name + ", and sbatch refuses the script because of '" +
                       word + "' behind it; write " + cut->name + "=" + joined);
    return;
  }
  context.report(
      "directive-misspelt", line.line,
      "'" + word +
          "' is not an option, and sbatch refuses the script; options begin with two hyphens, which are "
          "not the dashes that text programs make of them, and a remark begins with #");
}

/// sbatch reads a line up to its first #, and so only the first directive in it.
void check_second_directive(LintContext& context, const ScriptDirectiveLine& line) {
  const std::size_t at = line.text.find(kSbatch);
  if (at == std::string::npos ||
      !without_blanks(std::string_view(line.text).substr(at + kSbatch.size())).starts_with('-'))
    return;
  context.report("directives-on-one-line", line.line,
                 "sbatch takes what follows the second # for a comment, and ignores '" +
                     std::string(trim(std::string_view(line.text).substr(at))) +
                     "'; write it on a line of its own");
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
    } else if (!line.not_options.empty() && !is_one_placeholder(line.text)) {
      check_stray_word(context, line);
    }
    check_second_directive(context, line);
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

void check_continuations(LintContext& context) {
  for (const BrokenContinuation& one : context.script().broken_continuations) {
    context.report(
        "broken-continuation", one.line,
        one.by_comment
            ? "this comment ends the command that the line before it continues, and the shell takes "
              "the options behind it for a command of their own; move the comment in front of "
              "the command"
            : "a backslash continues a line only as its last character, and this one has a blank "
              "behind it: the shell passes that blank on, and takes the next line for a command "
              "of its own; remove all that follows the backslash");
  }
}

}  // namespace

void check_form(LintContext& context) {
  check_first_line(context);
  check_line_ends(context);
  check_comments(context);
  check_directive_lines(context);
  check_expansions(context);
  check_continuations(context);
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
  check_signal(context, context.directive("--signal"));
  check_requeue(context);
  check_names(context, script.directives, SlurmProgram::kSbatch);
  for (const ScriptStep& step : script.steps) {
    check_signal(context, find_option(step.options, "--signal"));
    check_names(context, step.options, SlurmProgram::kSrun);
  }
}

}  // namespace ddl::templates
