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

const SlurmOption* LintContext::directive(std::string_view name) const {
  return find_option(script_.directives, name);
}

const ShellAssignment* LintContext::assignment(std::string_view name) const {
  const auto found = std::find_if(script_.assignments.begin(), script_.assignments.end(),
                                  [&](const ShellAssignment& one) { return one.name == name; });
  return found == script_.assignments.end() ? nullptr : &*found;
}

std::string LintContext::resolved(const std::string& value) const {
  std::string_view name = value;
  if (!name.starts_with('$')) return value;
  name.remove_prefix(1);
  if (name.starts_with('{') && name.ends_with('}')) name = name.substr(1, name.size() - 2);
  const ShellAssignment* found = nullptr;
  for (const ShellAssignment& one : script_.assignments) {
    if (one.name != name) continue;
    if (found != nullptr) return value;
    found = &one;
  }
  return found == nullptr ? value : found->value;
}

bool LintContext::may_be_set(std::string_view name) const {
  constexpr std::array<std::string_view, 4> kOfOthers = {"SLURM_", "SBATCH_", "SRUN_", "BASH"};
  constexpr std::array<std::string_view, 8> kOfShells = {"HOME", "USER",   "PWD",      "OLDPWD",
                                                         "PATH", "TMPDIR", "HOSTNAME", "RANDOM"};
  if (std::any_of(kOfOthers.begin(), kOfOthers.end(), [&](auto start) { return name.starts_with(start); }) ||
      std::find(kOfShells.begin(), kOfShells.end(), name) != kOfShells.end() || assignment(name) != nullptr)
    return true;
  return std::any_of(script_.commands.begin(), script_.commands.end(), [&](const ShellCommand& command) {
    // The file or text that they read may set any variable.
    if (command.is_named("source") || command.is_named(".") || command.is_named("eval")) return true;
    constexpr std::array<std::string_view, 8> kSetters = {"for",       "read",    "mapfile", "printf",
                                                          "readarray", "declare", "select",  "getopts"};
    return std::any_of(kSetters.begin(), kSetters.end(), [&](auto one) { return command.is_named(one); }) &&
           std::any_of(command.words.begin() + 1, command.words.end(),
                       [&](const ShellWord& word) { return word.text == name; });
  });
}

std::string LintContext::expanded(const std::string& value, std::vector<std::string>& unset) const {
  const auto is_name_part = [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  };
  std::string text = value;
  std::size_t at = 0;
  // A variable may contain others; one that contains itself ends with the limit.
  constexpr int kMaxVariables = 32;
  constexpr std::size_t kMaxTextBytes = 1 << 16;
  for (int round = 0; round < kMaxVariables && text.size() < kMaxTextBytes; ++round) {
    at = text.find('$', at);
    if (at == std::string::npos) break;
    const bool braced = text.compare(at + 1, 1, "{") == 0;
    const std::size_t start = at + (braced ? 2 : 1);
    std::size_t end = start;
    while (end < text.size() && is_name_part(text[end])) ++end;
    const std::string name = text.substr(start, end - start);
    const bool is_plain = !name.empty() && (name[0] < '0' || name[0] > '9') &&
                          (!braced || (end < text.size() && text[end] == '}'));
    const std::string reference = text.substr(at, end + (braced && is_plain ? 1 : 0) - at);
    const std::string held = is_plain ? resolved(reference) : reference;
    if (is_plain && !may_be_set(name) && std::find(unset.begin(), unset.end(), name) == unset.end())
      unset.push_back(name);
    if (held == reference)
      ++at;
    else
      text.replace(at, reference.size(), held);
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
