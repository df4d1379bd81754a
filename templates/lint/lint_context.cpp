#include "templates/lint/lint_context.h"

#include <algorithm>

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
  constexpr std::int64_t kMost = 1'000'000;
  const auto number = parse_integer(option->value);
  if (!number || *number < 1 || *number > kMost) return std::nullopt;
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

void LintContext::report(std::string_view rule, int line, std::string sentence) {
  const auto rules = lint_rules();
  const auto found =
      std::find_if(rules.begin(), rules.end(), [&](const LintRule& one) { return one.name == rule; });
  DDL_CHECK(found != rules.end(), std::string(rule));
  findings_.push_back(
      {std::string(rule), found->severity, line, std::move(sentence), std::string(found->reference)});
}

}  // namespace ddl::templates
