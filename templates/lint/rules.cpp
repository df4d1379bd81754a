#include "templates/lint/rules.h"

#include <algorithm>
#include <array>

#include "base/text.h"

namespace ddl::templates {

const SlurmOption* find_option(const std::vector<SlurmOption>& options, std::string_view name) {
  const auto found = std::find_if(options.rbegin(), options.rend(),
                                  [&](const SlurmOption& option) { return option.name == name; });
  return found == options.rend() ? nullptr : &*found;
}

std::optional<std::int64_t> count_of(const SlurmOption* option) {
  if (option == nullptr) return std::nullopt;
  // More than any job has: products of three such counts do not overflow.
  constexpr std::int64_t kMaxCount = 1'000'000;
  const auto number = parse_integer(option->value);
  if (!number || *number < 1 || *number > kMaxCount) return std::nullopt;
  return number;
}

std::string on_line(int other, int line) { return other == line ? "" : " on line " + std::to_string(other); }

const SlurmOption* option_of(const LintContext& context, const ScriptStep& step, std::string_view name) {
  const SlurmOption* own = find_option(step.options, name);
  return own != nullptr ? own : context.directive(name);
}

bool is_jobs_own(const LintContext& context) {
  constexpr std::array<std::string_view, 5> kArguments = {"$1", "${1", "$@", "${@", "$*"};
  return !context.script().directive_lines.empty() ||
         std::none_of(kArguments.begin(), kArguments.end(), [&](std::string_view one) {
           return context.raw().find(one) != std::string_view::npos;
         });
}

bool is_any_of(std::span<const std::string_view> names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool is_prefix(std::string_view word) {
  constexpr std::array<std::string_view, 8> kPrefixes = {"env",     "exec", "time",   "nohup",
                                                         "command", "nice", "setsid", "stdbuf"};
  return is_any_of(kPrefixes, file_name_of(word)) ||
         (word.find('=') != std::string_view::npos && !word.starts_with('-'));
}

std::span<const std::string> without_prefixes(std::span<const std::string> words) {
  while (!words.empty() && is_prefix(words.front())) words = words.subspan(1);
  return words;
}

LintContext::LintContext(std::string_view raw, const SiteProfile* site)
    : raw_(raw), site_(site), script_(read_script(raw)) {
  constexpr std::array<std::string_view, 9> kSetters = {"for",     "read",   "mapfile", "printf", "readarray",
                                                        "declare", "select", "getopts", "unset"};
  for (const ShellCommand& command : script_.commands) {
    if (command.words.empty()) continue;
    const std::string_view name = command.words.front().text;
    // The file or text that they read may set any variable.
    if (name == "source" || name == "." || name == "eval") reads_other_text_ = true;
    if (!is_any_of(kSetters, name)) continue;
    for (const ShellWord& word : command.words) set_by_commands_.insert(word.text);
  }
}

const SlurmOption* LintContext::directive(std::string_view name) const {
  return find_option(script_.directives, name);
}

const ShellAssignment* LintContext::assignment(std::string_view name) const {
  const auto found = std::find_if(script_.assignments.begin(), script_.assignments.end(),
                                  [&](const ShellAssignment& one) { return one.name == name; });
  return found == script_.assignments.end() ? nullptr : &*found;
}

std::optional<std::size_t> LintContext::place_of(const ScriptStep& step) const {
  if (script_.commands[step.command].in_function) return std::nullopt;
  return step.command;
}

namespace {

bool is_part_of_name(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
}

/// A $NAME or ${NAME} in a text.
struct VariableReference {
  std::size_t at = 0;
  std::size_t size = 0;
  std::string_view name;  ///< "" for other expansions, such as $(...) and ${NAME:-1}
};

/// The first $ from a position on; nullopt if there is none.
std::optional<VariableReference> next_reference(std::string_view text, std::size_t from) {
  const std::size_t at = text.find('$', from);
  if (at == std::string_view::npos) return std::nullopt;
  const bool braced = text.substr(at + 1).starts_with('{');
  const std::size_t start = at + (braced ? 2 : 1);
  std::size_t end = start;
  while (end < text.size() && is_part_of_name(text[end])) ++end;
  const std::string_view name = text.substr(start, end - start);
  const bool is_plain = !name.empty() && (name[0] < '0' || name[0] > '9') &&
                        (!braced || (end < text.size() && text[end] == '}'));
  if (!is_plain) return VariableReference{at, 1, {}};
  return VariableReference{at, end + (braced ? 1 : 0) - at, name};
}

/// The assigned value, in which own is the variable's value before; nullopt if it depends on that in another way.
std::optional<std::string> appended(const ShellAssignment& one, const std::optional<std::string>& own) {
  const bool has_own = std::find(one.expands.begin(), one.expands.end(), one.name) != one.expands.end();
  if ((has_own || one.appends) && !own) return std::nullopt;
  std::string value = one.appends ? *own : "";
  if (!has_own) return value + one.value;
  std::size_t done = 0;
  bool is_replaced = false;
  while (const auto reference = next_reference(one.value, done)) {
    value += one.value.substr(done, reference->at - done);
    const bool is_own = reference->name == one.name;
    value += is_own ? *own : one.value.substr(reference->at, reference->size);
    is_replaced = is_replaced || is_own;
    if (reference->name.empty() &&
        one.value.compare(reference->at + 1, one.name.size() + 1, "{" + one.name) == 0)
      return std::nullopt;
    done = reference->at + reference->size;
  }
  if (!is_replaced) return std::nullopt;
  return value + one.value.substr(done);
}

}  // namespace

std::optional<std::string> LintContext::value_of(std::string_view name,
                                                 std::optional<std::size_t> place) const {
  // More than any list of CPUs has.
  constexpr std::size_t kMaxAssignments = 64;
  constexpr std::size_t kMaxValueBytes = 1 << 14;
  const ScriptAssignment* first = nullptr;
  std::size_t count = 0;
  bool are_kept = true;
  for (const ScriptAssignment& one : script_.assignments) {
    if (one.name != name) continue;
    if (first == nullptr) first = &one;
    are_kept = are_kept && one.command && !one.value.starts_with('(');
    if (++count > kMaxAssignments) return std::nullopt;
  }
  if (count == 0) return std::nullopt;
  if (count == 1 && (!are_kept || !place)) return first->value;
  if (!are_kept || !place || set_by_commands_.contains(name)) return std::nullopt;
  std::optional<std::string> value;
  for (const ScriptAssignment& one : script_.assignments) {
    if (one.name != name || *one.command >= *place) continue;
    value = appended(one, value);
    if (!value || value->size() > kMaxValueBytes) return std::nullopt;
  }
  return value;
}

std::string LintContext::resolved(const std::string& value) const {
  const auto reference = next_reference(value, 0);
  if (!reference || reference->at != 0 || reference->size != value.size()) return value;
  return value_of(reference->name, std::nullopt).value_or(value);
}

bool LintContext::is_set_only_behind(std::string_view name, std::size_t place) const {
  bool is_set = false;
  for (const ScriptAssignment& one : script_.assignments) {
    if (one.name != name) continue;
    if (!one.command || *one.command <= place) return false;
    is_set = true;
  }
  return is_set;
}

bool LintContext::may_be_set_otherwise(std::string_view name) const {
  constexpr std::array<std::string_view, 4> kOfOthers = {"SLURM_", "SBATCH_", "SRUN_", "BASH"};
  constexpr std::array<std::string_view, 8> kOfShells = {"HOME", "USER",   "PWD",      "OLDPWD",
                                                         "PATH", "TMPDIR", "HOSTNAME", "RANDOM"};
  if (std::any_of(kOfOthers.begin(), kOfOthers.end(), [&](auto start) { return name.starts_with(start); }) ||
      std::find(kOfShells.begin(), kOfShells.end(), name) != kOfShells.end())
    return true;
  return reads_other_text_ || set_by_commands_.contains(name);
}

std::string LintContext::expanded(const std::string& value, std::optional<std::size_t> place,
                                  std::vector<std::string>& unset) const {
  std::string text = value;
  std::size_t at = 0;
  // How much of the end of the text is value's own. What a variable contains was expanded where it was assigned, and
  // not here.
  std::size_t own = text.size();
  // A variable may contain others; one that contains itself ends with the limit.
  constexpr int kMaxVariables = 32;
  constexpr std::size_t kMaxTextBytes = 1 << 16;
  for (int round = 0; round < kMaxVariables && text.size() < kMaxTextBytes; ++round) {
    const auto reference = next_reference(text, at);
    if (!reference) break;
    at = reference->at;
    const std::string name(reference->name);
    const std::size_t rest = text.size() - at - reference->size;
    const auto used_at = rest < own ? place : std::nullopt;
    own = std::min(own, rest);
    const auto held = name.empty() ? std::nullopt : value_of(name, used_at);
    const bool is_unset = !name.empty() && !may_be_set_otherwise(name) &&
                          (assignment(name) == nullptr || (used_at && is_set_only_behind(name, *used_at)));
    if (is_unset && std::find(unset.begin(), unset.end(), name) == unset.end()) unset.push_back(name);
    if (held)
      text.replace(at, reference->size, *held);
    else
      ++at;
  }
  return text;
}

void LintContext::report(std::string_view rule, int line, std::string sentence) {
  const auto rules = lint_rules();
  const auto found =
      std::find_if(rules.begin(), rules.end(), [&](const LintRule& one) { return one.name == rule; });
  DDL_CHECK(found != rules.end(), std::string(rule));
  findings_.push_back(
      {std::string(rule), found->severity, line, std::move(sentence), std::string(found->reference)});
}

}  // namespace ddl::templates
