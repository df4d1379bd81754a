#include "cli/options/shell_completion.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/text.h"
#include "cli/options/completion_parts.h"
#include "cli/options/option_table.h"
#include "cli/options/option_values.h"

namespace ddl::cli {

namespace {

// ---- bash ----

/// The body of the branch that completes $value as a value of this kind.
std::string bash_values(const OptionEntry& entry) {
  switch (kind_of(entry)) {
    case ValueKind::kWords: return "_ddlrun_reply < <(compgen -W '" + words_of_option(entry) + "')";
    case ValueKind::kFile: return "_ddlrun_files -f";
    case ValueKind::kDirectory: return "_ddlrun_files -d";
    case ValueKind::kSite: return "_ddlrun_reply < <(_ddlrun_sites); _ddlrun_files -f";
    case ValueKind::kHosts: return "compopt -o nospace 2>/dev/null; _ddlrun_reply < <(_ddlrun_hosts)";
    case ValueKind::kNone:
    case ValueKind::kOther: break;
  }
  return ":";
}

constexpr std::string_view kBash =
    R"bash(# Completion of ddlrun for bash, written by "ddlrun --completion bash". Read it with
#   source <(ddlrun --completion bash)

_ddlrun_sites() { ddlrun --list-sites 2>/dev/null | sed 's/ .*//'; }

# For each known host, what $value would be with it as the last one of the list.
_ddlrun_hosts() {
  local i file='' before=''
  for ((i = 1; i < ${#words[@]} - 1; i++)); do
    case ${words[i]} in
      @HOSTFILE@) file=${words[i + 1]} ;;
      @HOSTFILE=@) file=${words[i]#*=} ;;
    esac
  done
  [[ $value != *,* ]] || before=${value%,*},
  if [ -n "$file" ]; then
    sed -n @NAME@ "${file/#\~\//$HOME/}"
  elif [ -n "${SLURM_JOB_NODELIST-}" ]; then
    scontrol show hostnames
  else
    compgen -A hostname
  fi 2>/dev/null | while IFS= read -r i; do echo "$before$i"; done
}

# The words on standard input that begin as $value does. bash breaks words at : and =, and keeps what is before.
_ddlrun_reply() {
  local word kept=$((${#value} - ${#cur}))
  while IFS= read -r word; do
    [[ $word == "$value"* ]] || continue
    if [ "$kept" -ge 0 ]; then COMPREPLY+=("${word:kept}"); else COMPREPLY+=("${cur:0:-kept}$word"); fi
  done
}

_ddlrun_files() {
  compopt -o filenames 2>/dev/null
  _ddlrun_reply < <(compgen "$1" -- "$value")
}

# Sets words to those before the cursor as ddlrun gets them, and first to the index of each in COMP_WORDS.
_ddlrun_words() {
  local i rest=$COMP_LINE
  for ((i = 0; i <= COMP_CWORD; i++)); do
    if [ "$i" -eq 0 ] || [[ $rest == [[:space:]]* ]]; then
      rest=${rest#"${rest%%[![:space:]]*}"}
      words+=('')
      first+=("$i")
    fi
    words[${#words[@]} - 1]+=${COMP_WORDS[i]}
    rest=${rest#"${COMP_WORDS[i]}"}
  done
}

_ddlrun() {
  local cur=${COMP_WORDS[COMP_CWORD]} option='' value i=1 last words=() first=()
  case $cur in : | =) cur='' ;; esac
  COMPREPLY=()
  _ddlrun_words
  last=$((${#words[@]} - 1))
  value=${words[last]}
  while [ "$i" -lt "$last" ]; do
    case ${words[i]} in
      @TWO@)
        option=${words[i]}
        i=$((i + 1))
        [[ ${words[i]} == *=* ]] || i=$((i + 1)) # NAME=VALUE, or NAME and VALUE
        [ "$i" -ge "$last" ] || option=''
        ;;
      @ONE@)
        i=$((i + 1))
        [ "$i" -lt "$last" ] || option=${words[i - 1]}
        ;;
      @OPTIONAL@)
        if [[ ${words[i + 1]} != -* ]]; then
          i=$((i + 1))
          [ "$i" -lt "$last" ] || option=${words[i - 1]}
        fi
        ;;
      -?*)
        [ "${words[i]}" != -- ] || break
        ;;
      *) break ;;
    esac
    i=$((i + 1))
  done
  if [ "$i" -lt "$last" ]; then # the command begins here
    [ "${words[i]}" != -- ] || i=$((i + 1))
    if [ "$i" -eq "$last" ]; then
      _ddlrun_reply < <(compgen -c -- "$value")
    elif declare -F _command_offset >/dev/null; then
      _command_offset "${first[i]}"
    else
      _ddlrun_files -f
    fi
    return
  fi
  if [[ -z $option && $value == -*=* ]]; then
    option=${value%%=*}
    value=${value#*=}
  fi
  case $option in
    '')
      case $value in
        -*) _ddlrun_reply < <(compgen -W '@ALL@') ;;
        *) _ddlrun_reply < <(compgen -c -- "$value") ;;
      esac
      ;;
@VALUES@  esac
}
complete -o default -F _ddlrun ddlrun
)bash";

std::string bash_completion() {
  std::vector<std::string> all;
  std::string values;
  for (const OptionEntry& entry : option_table()) {
    const auto spellings = split(entry.spellings, ',');
    all.insert(all.end(), spellings.begin(), spellings.end());
    if (!entry.takes_value()) continue;
    values +=
        "    " + join({spellings.begin(), spellings.end()}, " | ") + ") " + bash_values(entry) + " ;;\n";
  }
  return filled(kBash, {{"@HOSTFILE@", hostfile_patterns(" | ", "")},
                        {"@HOSTFILE=@", hostfile_patterns(" | ", "=*")},
                        {"@NAME@", std::string(kNameOfLine)},
                        {"@TWO@", spellings_with(Arity::kTwo, " | ")},
                        {"@ONE@", spellings_with(Arity::kOne, " | ")},
                        {"@OPTIONAL@", spellings_with(Arity::kOptional, " | ")},
                        {"@ALL@", join(all, " ")},
                        {"@VALUES@", values}});
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
    case ValueKind::kWords: return "(" + words_of_option(entry) + ")";
    case ValueKind::kFile: return "_files";
    case ValueKind::kDirectory: return "_files -/";
    case ValueKind::kHosts: return "_ddlrun_hosts";
    case ValueKind::kSite: return "_ddlrun_sites";
    case ValueKind::kNone:
    case ValueKind::kOther: break;
  }
  return "";
}

constexpr std::string_view kZsh =
    R"zsh(#compdef ddlrun
# Completion of ddlrun for zsh, written by "ddlrun --completion zsh": a file _ddlrun in a folder of $fpath.

_ddlrun_sites() {
  local -a sites
  sites=(${${(f)"$(ddlrun --list-sites 2>/dev/null)"}%% *})
  _alternative 'sites:site:compadd -a sites' 'files:file:_files'
}

# The last one of a list of hosts.
_ddlrun_hosts() {
  local -a hosts
  local i file
  for ((i = 2; i < CURRENT; i++)); do
    case $words[i] in
      @HOSTFILE@) file=$words[i+1] ;;
      @HOSTFILE=@) file=${words[i]#*=} ;;
    esac
  done
  compset -P '*,'
  if [[ -n $file ]]; then
    hosts=(${(f)"$(sed -n @NAME@ ${file/#\~\//$HOME/} 2>/dev/null)"})
  elif [[ -n $SLURM_JOB_NODELIST ]]; then
    hosts=(${(f)"$(scontrol show hostnames 2>/dev/null)"})
  else
    _hosts
    return
  fi
  compadd -S '' -a hosts
}

_arguments -S \
@OPTIONS@  '*:::command:_normal'
)zsh";

std::string zsh_completion() {
  std::string options;
  for (const OptionEntry& entry : option_table()) {
    for (const std::string_view spelling : split(entry.spellings, ',')) {
      options += "  '*" + std::string(spelling);
      // As another word, and with two dashes also behind "=".
      if (entry.takes_value() && spelling.starts_with("--")) options += "=";
      options += "[" + zsh_text(entry.help) + "]";
      if (entry.takes_value()) {
        const bool is_optional = (entry.rules & kOptionalValue) != 0;
        options += std::string(is_optional ? "::" : ":") + zsh_text(entry.value) + ":" + zsh_values(entry);
        if ((entry.rules & kNameAndValue) != 0) options += "::value:";
      }
      options += "' \\\n";
    }
  }
  return filled(kZsh, {{"@HOSTFILE@", hostfile_patterns("|", "")},
                       {"@HOSTFILE=@", hostfile_patterns("|", "=*")},
                       {"@NAME@", std::string(kNameOfLine)},
                       {"@OPTIONS@", options}});
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
    case ValueKind::kWords:
      return ((entry.rules & kOptionalValue) != 0 ? " -f -a '" : " -x -a '") + words_of_option(entry) + "'";
    case ValueKind::kFile: return " -r -F";
    case ValueKind::kSite: return " -r -F -a '(__ddlrun_sites)'";
    case ValueKind::kDirectory: return " -x -a '(__fish_complete_directories)'";
    case ValueKind::kHosts: return " -x -a '(__ddlrun_hosts)'";
    case ValueKind::kOther: return (entry.rules & kOptionalValue) != 0 ? "" : " -x";
    case ValueKind::kNone: break;
  }
  return "";
}

constexpr std::string_view kFish =
    R"fish(# Completion of ddlrun for fish, written by "ddlrun --completion fish". Read it with
#   ddlrun --completion fish | source

function __ddlrun_sites
    ddlrun --list-sites 2>/dev/null | string replace -r ' .*' ''
end

# For each known host, what the word would be with it as the last one of the list.
function __ddlrun_hosts
    set -l words (commandline -opc)
    set -l file
    for i in (seq (count $words))
        switch $words[$i]
            case @HOSTFILE@
                set file $words[(math $i + 1)]
            case '--hostfile=*' '--machinefile=*'
                set file (string replace -r '^[^=]*=' '' -- $words[$i])
        end
    end
    set -l hosts
    if test -n "$file"
        set hosts (sed -n @NAME@ (string replace -r '^~/' "$HOME/" -- $file) 2>/dev/null)
    else if test -n "$SLURM_JOB_NODELIST"
        set hosts (scontrol show hostnames 2>/dev/null)
    else
        set hosts (__fish_print_hostnames)
    end
    set -l before (commandline -ct | string replace -r '^--[a-z-]*=' '' | string match -r '.*,')
    for host in $hosts
        echo "$before$host"
    end
end

# The words of the command before the cursor; fails while options of ddlrun are being typed.
function __ddlrun_command
    set -l words (commandline -opc)
    set -l i 2
    while test $i -le (count $words)
        switch $words[$i]
            case @TWO@
                set i (math $i + 1)
                string match -q '*=*' -- $words[$i]; or set i (math $i + 1)
            case @ONE@
                set i (math $i + 1)
            case @OPTIONAL@
                if test $i -lt (count $words); and not string match -q -- '-*' $words[(math $i + 1)]
                    set i (math $i + 1)
                end
            case --
                string escape -- $words[(math $i + 1)..]
                return 0
            case '-*'
            case '*'
                string escape -- $words[$i..]
                return 0
        end
        set i (math $i + 1)
    end
    return 1
end

function __ddlrun_is_option
    not __ddlrun_command >/dev/null
end

# Whether the word may be the value of this option, which may also have none.
function __ddlrun_follows
    contains -- (commandline -opc)[-1] $argv
end

# The command itself, or its words as it completes them.
function __ddlrun_complete_command
    set -l words (__ddlrun_command)
    set -l word (commandline -ct)
    if __ddlrun_is_option
        string match -q -- '-*' $word; or __ddlrun_follows @OPTIONAL@; and return
    end
    set -l line (string join ' ' -- $words "$word")
    complete --do-complete=$line
end

complete -c ddlrun -e
complete -c ddlrun -f -a '(__ddlrun_complete_command)'
)fish";

std::string fish_completion() {
  std::string text = filled(kFish, {{"@HOSTFILE@", hostfile_patterns(" ", "")},
                                    {"@NAME@", std::string(kNameOfLine)},
                                    {"@TWO@", spellings_with(Arity::kTwo, " ")},
                                    {"@ONE@", spellings_with(Arity::kOne, " ")},
                                    {"@OPTIONAL@", spellings_with(Arity::kOptional, " ")}});
  for (const OptionEntry& entry : option_table()) {
    text += "complete -c ddlrun -n __ddlrun_is_option";
    const auto parts = split(entry.spellings, ',');
    const std::vector<std::string> spellings(parts.begin(), parts.end());
    for (const std::string_view spelling : spellings) text += " " + fish_option(spelling);
    text += fish_values(entry) + " -d '" + fish_text(entry.help) + "'\n";
    if ((entry.rules & kOptionalValue) != 0 && kind_of(entry) == ValueKind::kWords) {
      text += fmt::format("complete -c ddlrun -n '__ddlrun_is_option; and __ddlrun_follows {}' -a '{}'\n",
                          join(spellings, " "), words_of_option(entry));
    }
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
