#include "cli/options/shell_completion.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "base/text.h"
#include "cli/options/option_table.h"
#include "cli/options/option_values.h"

namespace ddl::cli {

namespace {

/// What the value of an option is.
enum class ValueKind { kNone, kWords, kFile, kDirectory, kHosts, kSite, kOther };

bool is_word(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
  });
}

/// The words that the value may be, of which --help names few as "slot|node".
std::vector<std::string> words_of(const OptionEntry& entry) {
  std::vector<std::string> words = words_of_value(entry.id);
  if (!words.empty()) return words;
  for (const std::string_view part : split(entry.value, '|')) {
    if (is_word(part)) words.emplace_back(part);
  }
  return words;
}

ValueKind kind_of(const OptionEntry& entry) {
  using enum OptionId;
  if (!entry.takes_value()) return ValueKind::kNone;
  if (!words_of(entry).empty()) return ValueKind::kWords;
  if (entry.id == kSite || entry.id == kShowSite) return ValueKind::kSite;
  if (entry.id == kHosts || entry.id == kHostsExclude) return ValueKind::kHosts;
  if (entry.value == "FILE" || entry.id == kTopology) return ValueKind::kFile;
  return entry.value == "DIR" ? ValueKind::kDirectory : ValueKind::kOther;
}

std::string join_words(const std::vector<std::string>& words) { return join(words, " "); }

// ---- bash ----

/// The body of the branch that completes $cur as a value of this kind.
std::string bash_values(const OptionEntry& entry) {
  switch (kind_of(entry)) {
    case ValueKind::kWords:
      return "COMPREPLY=($(compgen -W '" + join_words(words_of(entry)) + "' -- \"$cur\"))";
    case ValueKind::kFile: return "COMPREPLY=($(compgen -f -- \"$cur\"))";
    case ValueKind::kDirectory: return "COMPREPLY=($(compgen -d -- \"$cur\"))";
    case ValueKind::kSite: return "COMPREPLY=($(compgen -W \"$(_ddlrun_sites)\" -f -- \"$cur\"))";
    case ValueKind::kHosts: return "COMPREPLY=($(compgen -W \"$(_ddlrun_hosts)\" -A hostname -- \"$cur\"))";
    case ValueKind::kNone:
    case ValueKind::kOther: break;
  }
  return ":";
}

constexpr std::string_view kBashHead =
    R"bash(# Completion of ddlrun for bash, written by "ddlrun --completion bash". Read it with
#   source <(ddlrun --completion bash)

_ddlrun_sites() { ddlrun --list-sites 2>/dev/null | sed 's/ .*//'; }

# The hosts of the hostfile that the command line names.
_ddlrun_hosts() {
  local i
  for ((i = 1; i < ${#COMP_WORDS[@]} - 1; i++)); do
    case ${COMP_WORDS[i]} in
      -hostfile | --hostfile | -machinefile | --machinefile)
        sed -n 's/^[[:space:]]*\([^#:[:space:]]\{1,\}\).*/\1/p' "${COMP_WORDS[i + 1]}" 2>/dev/null
        ;;
    esac
  done
}

_ddlrun() {
  local cur=${COMP_WORDS[COMP_CWORD]} option='' i=1
  [ "$cur" != = ] || cur=''
  COMPREPLY=()
  while [ "$i" -lt "$COMP_CWORD" ]; do
    case ${COMP_WORDS[i]} in
)bash";

constexpr std::string_view kBashTail = R"bash(    esac
    i=$((i + 1))
  done
  case $option in
)bash";

std::string bash_patterns(const OptionEntry& entry) {
  std::string patterns;
  for (const std::string_view spelling : split(entry.spellings, ','))
    patterns += (patterns.empty() ? "" : " | ") + std::string(spelling);
  return patterns;
}

std::string bash_completion() {
  std::vector<std::string> with_value, with_two, all;
  for (const OptionEntry& entry : option_table()) {
    if (entry.takes_value() && (entry.rules & kOptionalValue) == 0)
      ((entry.rules & kNameAndValue) != 0 ? with_two : with_value).push_back(bash_patterns(entry));
    for (const std::string_view spelling : split(entry.spellings, ',')) all.emplace_back(spelling);
  }
  std::string text(kBashHead);
  text += fmt::format(
      "      {})\n"
      "        i=$((i + 1))\n"
      "        [ \"${{COMP_WORDS[i + 1]}}\" = = ] && i=$((i + 1)) # NAME=VALUE\n"
      "        i=$((i + 1))\n"
      "        ;;\n",
      join(with_two, " | "));
  text += fmt::format(
      "      {})\n"
      "        option=${{COMP_WORDS[i]}}\n"
      "        i=$((i + 1))\n"
      "        [ \"${{COMP_WORDS[i]}}\" != = ] || i=$((i + 1))\n"
      "        [ \"$i\" -ge \"$COMP_CWORD\" ] || option=''\n"
      "        ;;\n"
      "      -?*) ;;\n"
      "      *) # the command begins here\n"
      "        if declare -F _command_offset >/dev/null; then\n"
      "          _command_offset \"$i\"\n"
      "        else\n"
      "          COMPREPLY=($(compgen -f -- \"$cur\"))\n"
      "        fi\n"
      "        return\n"
      "        ;;\n",
      join(with_value, " | "));
  text += kBashTail;
  text += "    '')\n      case $cur in\n        -*) COMPREPLY=($(compgen -W '" + join_words(all) +
          "' -- \"$cur\")) ;;\n        *) COMPREPLY=($(compgen -c -- \"$cur\")) ;;\n      esac\n      ;;\n";
  for (const OptionEntry& entry : option_table()) {
    if (entry.takes_value()) text += "    " + bash_patterns(entry) + ") " + bash_values(entry) + " ;;\n";
  }
  return text + "  esac\n}\ncomplete -o default -F _ddlrun ddlrun\n";
}

// ---- zsh ----

/// Text for a specification of _arguments, between single quotes.
std::string zsh_text(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '\'') {
      escaped += "'\\''";
    } else {
      if (c == '[' || c == ']' || c == ':' || c == '\\') escaped += '\\';
      escaped += c;
    }
  }
  return escaped;
}

std::string zsh_values(const OptionEntry& entry) {
  switch (kind_of(entry)) {
    case ValueKind::kWords: return "(" + join_words(words_of(entry)) + ")";
    case ValueKind::kFile: return "_files";
    case ValueKind::kDirectory: return "_files -/";
    case ValueKind::kHosts: return "_hosts";
    case ValueKind::kSite: return "_files";
    case ValueKind::kNone:
    case ValueKind::kOther: break;
  }
  return "";
}

std::string zsh_completion() {
  std::string text =
      "#compdef ddlrun\n"
      "# Completion of ddlrun for zsh, written by \"ddlrun --completion zsh\": a file _ddlrun in a folder "
      "of $fpath.\n\n"
      "_arguments -S \\\n";
  for (const OptionEntry& entry : option_table()) {
    for (const std::string_view spelling : split(entry.spellings, ',')) {
      text += "  '*" + std::string(spelling) + "[" + zsh_text(entry.help) + "]";
      if (entry.takes_value()) {
        const bool is_optional = (entry.rules & kOptionalValue) != 0;
        text += std::string(is_optional ? "::" : ":") + zsh_text(entry.value) + ":" + zsh_values(entry);
      }
      text += "' \\\n";
    }
  }
  return text + "  '*:::command:_normal'\n";
}

// ---- fish ----

std::string fish_text(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '\'' || c == '\\') escaped += '\\';
    escaped += c;
  }
  return escaped;
}

std::string fish_option(std::string_view spelling) {
  if (spelling.starts_with("--")) return "-l " + std::string(spelling.substr(2));
  return (spelling.size() == 2 ? "-s " : "-o ") + std::string(spelling.substr(1));
}

std::string fish_values(const OptionEntry& entry) {
  switch (kind_of(entry)) {
    case ValueKind::kWords: return " -x -a '" + join_words(words_of(entry)) + "'";
    case ValueKind::kFile:
    case ValueKind::kSite: return " -r";
    case ValueKind::kDirectory: return " -x -a '(__fish_complete_directories)'";
    case ValueKind::kHosts: return " -x -a '(__fish_print_hostnames)'";
    case ValueKind::kOther: return (entry.rules & kOptionalValue) != 0 ? "" : " -x";
    case ValueKind::kNone: break;
  }
  return "";
}

std::string fish_completion() {
  std::string text =
      "# Completion of ddlrun for fish, written by \"ddlrun --completion fish\". Read it with\n"
      "#   ddlrun --completion fish | source\n\n"
      "complete -c ddlrun -f\n"
      "complete -c ddlrun -a '(__fish_complete_subcommand)'\n";
  for (const OptionEntry& entry : option_table()) {
    text += "complete -c ddlrun";
    for (const std::string_view spelling : split(entry.spellings, ',')) text += " " + fish_option(spelling);
    text += fish_values(entry) + " -d '" + fish_text(entry.help) + "'\n";
  }
  return text;
}

}  // namespace

Result<Shell> parse_shell(std::string_view text) {
  return one_of<Shell>(text, {{"bash", Shell::kBash}, {"zsh", Shell::kZsh}, {"fish", Shell::kFish}});
}

std::string completion_for(Shell shell) {
  switch (shell) {
    case Shell::kZsh: return zsh_completion();
    case Shell::kFish: return fish_completion();
    case Shell::kBash: break;
  }
  return bash_completion();
}

}  // namespace ddl::cli
