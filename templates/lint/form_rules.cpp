#include <algorithm>
#include <cctype>

#include "base/text.h"
#include "templates/lint/rules.h"

namespace ddl::templates {
namespace {

constexpr std::string_view kSbatch = "#SBATCH";

bool is_blank(char c) { return c == ' ' || c == '\t'; }

std::string_view without_blanks(std::string_view text) {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  return text;
}

std::string upper(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return result;
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
  const auto line =
      1 + std::count(context.raw().begin(), context.raw().begin() + static_cast<std::ptrdiff_t>(at), '\n');
  context.report(
      "dos-line-ends", static_cast<int>(line),
      "this line ends as on DOS, in \\r\\n, and sbatch refuses the script; convert it with dos2unix, "
      "or with sed -i 's/\\r$//'");
}

/// A comment that was meant to be a directive: its first word has the letters of SBATCH, and an option follows.
bool is_almost_directive(std::string_view comment) {
  comment = without_blanks(comment.substr(1));
  const std::size_t end = comment.find_first_of(" \t-\\");
  if (end == std::string_view::npos || !without_blanks(comment.substr(end)).starts_with('-')) return false;
  const std::string word = upper(comment.substr(0, end));
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
                       "sbatch stops to read directives at the first command, on line " +
                           std::to_string(script.first_command_line) + "; move this line in front of it");
      }
    } else if ((comment.indented || !has_magic) && is_almost_directive(comment.text)) {
      context.report("directive-misspelt", comment.line,
                     "sbatch takes this line for a comment; begin it with #SBATCH, in capitals, at the "
                     "beginning of the line and without a blank inside, or with ## if it is to be none");
    }
  }
}

void check_directive_lines(LintContext& context) {
  for (const ScriptDirectiveLine& line : context.script().directive_lines) {
    if (line.text.starts_with('-')) {
      context.report("directive-misspelt", line.line,
                     "no blank parts #SBATCH from the option: sbatch reads it all the same, which its "
                     "documentation does not promise; write #SBATCH " +
                         std::string(trim(line.text)));
    } else if (without_blanks(line.text).starts_with("\\-")) {
      context.report(
          "directive-misspelt", line.line,
          "the backslash in front of the option comes from a document that this was copied from: "
          "sbatch leaves it out, but in front of $, # or a quote it changes what commands do; remove "
          "all that the document has added");
    } else if (!line.not_options.empty()) {
      context.report(
          "directive-misspelt", line.line,
          "'" + line.not_options.front() +
              "' is no option, and sbatch refuses the script; options begin with two hyphens, which "
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
                       " as it stands, since no shell reads a directive; write what it stands for, one of "
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

}  // namespace ddl::templates
