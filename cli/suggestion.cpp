#include "cli/suggestion.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "base/text.h"
#include "cli/option_table.h"

namespace ddl::cli {

namespace {

std::string_view without_dashes(std::string_view word) {
  const std::size_t first = word.find_first_not_of('-');
  return first == std::string_view::npos ? std::string_view{} : word.substr(first);
}

}  // namespace

int edit_distance(std::string_view a, std::string_view b) {
  // Optimal string alignment: three rows of the dynamic programme, rows by a, columns by b.
  std::vector<int> before_last(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = static_cast<int>(j);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = static_cast<int>(i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const int replaced = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, replaced});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
    std::swap(before_last, last);
    std::swap(last, row);
  }
  return last[b.size()];
}

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
