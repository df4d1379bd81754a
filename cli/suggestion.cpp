#include "cli/suggestion.h"

#include <algorithm>
#include <limits>

#include "base/text.h"
#include "cli/option_table.h"

namespace ddl::cli {

namespace {

std::string_view without_dashes(std::string_view word) {
  const std::size_t first = word.find_first_not_of('-');
  return first == std::string_view::npos ? std::string_view{} : word.substr(first);
}

}  // namespace

std::optional<std::string> suggest_option(std::string_view word) {
  const std::string_view name = without_dashes(word.substr(0, word.find('=')));
  // Longer than any option could be: not worth comparing.
  constexpr std::size_t kLongestName = 64;
  if (name.empty() || name.size() > kLongestName) return std::nullopt;

  int closest = std::numeric_limits<int>::max();
  std::string_view suggestion;
  for (const OptionEntry& entry : option_table()) {
    if (!entry.is_available()) continue;
    for (const std::string_view spelling : split(entry.spellings, ',')) {
      const std::string_view candidate = without_dashes(spelling);
      int distance = edit_distance(name, candidate);
      // "--output" for "--output-filename": cut short, as argparse would take it.
      if (name.size() >= 3 && candidate.starts_with(name)) distance = std::min(distance, 1);
      const int close_enough = static_cast<int>(std::max(name.size(), candidate.size())) / 3;
      // Another first letter of a short name is another name: -genv is no slip of --venv.
      constexpr std::size_t kShort = 6;
      if (name.size() < kShort && name.front() != candidate.front()) continue;
      if (distance <= close_enough && distance < closest) {
        closest = distance;
        suggestion = spelling;
      }
    }
  }
  if (suggestion.empty()) return std::nullopt;
  return std::string(suggestion);
}

}  // namespace ddl::cli
