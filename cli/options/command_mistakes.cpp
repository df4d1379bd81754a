#include "cli/options/command_mistakes.h"

#include <algorithm>
#include <string_view>

#include "base/text.h"
#include "cli/options/option_table.h"

namespace ddl::cli {

namespace {

bool is_number(std::string_view word) {
  return !word.empty() && std::all_of(word.begin(), word.end(), [](char c) { return c >= '0' && c <= '9'; });
}

/// "node2:4", which is no program but a piece of -H's value.
bool is_host_with_slots(std::string_view word) {
  const std::size_t colon = word.find(':');
  if (colon == 0 || colon == std::string_view::npos) return false;
  const std::string_view slots = word.substr(colon + 1, word.find(',', colon) - colon - 1);
  return word.find('/') == std::string_view::npos && is_number(slots);
}

/// "node#" of "node17".
std::string without_numbers(std::string_view name) {
  std::string shape;
  for (const char c : name) {
    const bool is_digit = c >= '0' && c <= '9';
    if (!is_digit || !shape.ends_with('#')) shape += is_digit ? '#' : c;
  }
  return shape;
}

/// "node2" behind "-H node1".
bool is_numbered_like(std::string_view word, const std::vector<GivenValue>& hosts) {
  const std::string shape = without_numbers(word);
  if (shape.find('#') == std::string::npos) return false;
  return std::any_of(hosts.begin(), hosts.end(), [&shape](const GivenValue& value) {
    const std::string_view last = std::string_view(value.text).substr(value.text.rfind(',') + 1);
    return without_numbers(last.substr(0, last.find(':'))) == shape;
  });
}

/// For an example: the command as typed, or its beginning.
std::string command_excerpt(const std::vector<std::string>& command) {
  constexpr std::size_t kMaxColumns = 60;
  std::string text;
  for (const std::string& word : command) {
    const std::string quoted = shell_quote(word);
    if (text.size() + quoted.size() > kMaxColumns) return text + (text.empty() ? "command..." : " ...");
    text += (text.empty() ? "" : " ") + quoted;
  }
  return text.empty() ? "command args..." : text;
}

bool is_rank_count(const std::string& word) {
  const OptionEntry* entry = find_spelling(std::string_view(word).substr(0, word.find('=')));
  return entry != nullptr && entry->id == OptionId::kNumProc;
}

}  // namespace

Status refuse_command(const SplitArgv& split, const GivenOptions& given) {
  if (split.ends_with_dashes || split.command.empty()) return {};
  const std::string& first = split.command.front();
  if (first == "=")
    return refuse("the word = stands where the command begins",
                  "write a value without spaces: --timeout=60, -x NAME=VALUE");
  if (!given.has(OptionId::kHosts)) return {};
  if (!is_host_with_slots(first) && !is_numbered_like(first, given[OptionId::kHosts])) return {};
  return refuse("the hosts of " + given.typed_name(OptionId::kHosts) +
                    " end at a space: " + shell_quote(first) + " would be the command",
                "write the hosts as one word with commas and no space: -H node1:4,node2:4; a program of "
                "this name is given after --");
}

Status refuse_rank_count_behind(const std::vector<std::string>& command) {
  if (std::none_of(command.begin(), command.end(), is_rank_count)) return {};
  return refuse("-np is missing: the one after " + shell_quote(command.front()) + " belongs to the command",
                "options of ddlrun come before the command");
}

Status missing_rank_count(const std::vector<std::string>& command, int cpus) {
  const std::string first = command.empty() ? "" : command.front();
  if (command.size() == 1 && (first == "help" || first == "version"))
    return refuse("-np is missing for the command " + first, "for ddlrun's own: ddlrun --" + first);
  if (is_number(first) && command.size() > 1)
    return refuse("-np is missing before " + first,
                  "type ddlrun -np " + first + " " + command_excerpt({command.begin() + 1, command.end()}));
  return refuse("-np is missing: how many ranks?", "ddlrun may use " + counted(cpus, "CPU") +
                                                       " here: ddlrun -np " + std::to_string(cpus) + " " +
                                                       command_excerpt(command));
}

}  // namespace ddl::cli
