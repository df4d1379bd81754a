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

LintContext::LintContext(std::string_view raw, const SiteProfile* site)
    : raw_(raw), site_(site), script_(read_script(raw)) {}

const SlurmOption* LintContext::directive(std::string_view name) const {
  return find_option(script_.directives, name);
}

std::optional<std::size_t> LintContext::place_of(const ScriptStep& step) const {
  if (script_.commands[step.command].in_function) return std::nullopt;
  return step.command;
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
