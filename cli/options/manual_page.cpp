#include "cli/options/manual_page.h"

#include <string_view>

#include "base/text.h"
#include "cli/options/option_table.h"
#include "contract/version.h"

namespace ddl::cli {

namespace {

/// Text as roff reads it: a backslash, a dash that is no hyphen, and a line that begins with a dot are escaped.
std::string roff(std::string_view text) {
  std::string escaped;
  if (text.starts_with('.') || text.starts_with('\'')) escaped += "\\&";
  for (const char c : text) {
    if (c == '\\') {
      escaped += "\\e";
    } else if (c == '-') {
      escaped += "\\-";
    } else {
      escaped += c;
    }
  }
  return escaped;
}

/// "\fB\-np\fR \fIN\fR, \fB\-\-num\-proc\fR \fIN\fR"
std::string option_heading(const OptionEntry& entry) {
  std::string line;
  for (const std::string_view spelling : split(entry.spellings, ',')) {
    line += (line.empty() ? "" : ", ") + ("\\fB" + roff(spelling)) + "\\fR";
    if (entry.takes_value()) line += " \\fI" + roff(entry.value) + "\\fR";
  }
  return line;
}

std::string paragraphs(std::string_view text) {
  std::string page;
  for (const std::string_view line : split(text, '\n')) page += line.empty() ? ".PP\n" : roff(line) + "\n";
  return page;
}

}  // namespace

std::string manual_page() {
  std::string page = std::string(".TH DDLRUN 1 \"\" \"ddlrun ") + contract::kVersion +
                     "\" \"User Commands\"\n.SH NAME\nddlrun \\- start the ranks of a parallel program\n"
                     ".SH SYNOPSIS\n.B ddlrun\n" +
                     roff("-np N [-H HOSTS] [options] [--] command [args...]") + "\n.SH DESCRIPTION\n" +
                     paragraphs(help_description()) + ".SH OPTIONS\n";
  for (const OptionHeading& heading : option_headings()) {
    page += ".SS " + roff(heading.text) + "\n";
    for (const OptionEntry& entry : option_table()) {
      if (entry.group == heading.group)
        page += ".TP\n" + option_heading(entry) + "\n" + roff(entry.help) + "\n";
    }
  }
  page += ".SH EXIT STATUS\n" + paragraphs(help_exit_codes()) + ".SH EXAMPLES\n";
  for (const OptionExample& example : option_examples()) {
    page += ".TP\n\\fB" + roff(example.command) + "\\fR\n";
    page += example.effect.empty() ? "\\&\n" : roff(example.effect) + "\n";
  }
  return page +
         ".SH FILES\nThe guides and the reference are in the folder of documents that is installed with "
         "ddlrun.\n"
         ".SH SEE ALSO\n.BR mpirun (1),\n.BR srun (1),\n.BR sbatch (1),\n.BR ssh (1)\n";
}

}  // namespace ddl::cli
