#include "cli/options/completion_parts.h"

#include <algorithm>

#include "base/text.h"
#include "cli/options/option_values.h"

namespace ddl::cli {

namespace {

bool is_word(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
  });
}

}  // namespace

std::vector<std::string> words_of(const OptionEntry& entry) {
  std::vector<std::string> words = words_of_value(entry.id);
  if (!words.empty()) return words;
  for (const std::string_view part : split(entry.value, '|')) {
    if (is_word(part)) words.emplace_back(part);
  }
  return words;
}

std::string words_of_option(const OptionEntry& entry) { return join(words_of(entry), " "); }

ValueKind kind_of(const OptionEntry& entry) {
  using enum OptionId;
  if (!entry.takes_value()) return ValueKind::kNone;
  if (!words_of(entry).empty()) return ValueKind::kWords;
  if (entry.id == kSite || entry.id == kShowSite) return ValueKind::kSite;
  if (entry.id == kHosts || entry.id == kHostsExclude) return ValueKind::kHosts;
  if (entry.value == "FILE" || entry.id == kTopology) return ValueKind::kFile;
  return entry.value == "DIR" ? ValueKind::kDirectory : ValueKind::kOther;
}

std::string spellings_with(Arity arity, std::string_view separator) {
  std::vector<std::string> spellings;
  for (const OptionEntry& entry : option_table()) {
    const Arity own = !entry.takes_value()                  ? Arity::kNone
                      : (entry.rules & kOptionalValue) != 0 ? Arity::kOptional
                      : (entry.rules & kNameAndValue) != 0  ? Arity::kTwo
                                                            : Arity::kOne;
    if (own != arity) continue;
    for (const std::string_view spelling : split(entry.spellings, ',')) spellings.emplace_back(spelling);
  }
  return join(spellings, separator);
}

std::string hostfile_patterns(std::string_view separator, std::string_view end) {
  std::vector<std::string> patterns;
  for (const std::string_view spelling : split(entry_of(OptionId::kHostfile).spellings, ','))
    patterns.push_back(std::string(spelling) + std::string(end));
  return join(patterns, separator);
}

const std::string_view kNameOfLine =
    R"(-e 's/^[[:space:]]*\(\[[^]]*:[^]]*\]\).*/\1/p;t' -e 's/^[[:space:]]*\([^#:[:space:]]\{1,\}\).*/\1/p')";

std::string filled(std::string_view script,
                   const std::vector<std::pair<std::string_view, std::string>>& parts) {
  std::string text(script);
  for (const auto& [name, part] : parts) {
    for (std::size_t at = text.find(name); at != std::string::npos; at = text.find(name, at + part.size()))
      text.replace(at, name.size(), part);
  }
  return text;
}

}  // namespace ddl::cli
