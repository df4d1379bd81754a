#include "cli/argv_prepass.h"

#include <optional>
#include <string_view>

#include "cli/option_table.h"

namespace ddl::cli {

namespace {

/// One word that starts with a dash, taken apart.
struct OptionWord {
  const OptionEntry* entry = nullptr;
  std::optional<std::string_view> attached_value;
};

OptionWord take_apart(std::string_view word) {
  if (const OptionEntry* entry = find_spelling(word)) return {entry, std::nullopt};

  const std::size_t equals = word.find('=');
  if (equals != std::string_view::npos) {
    const OptionEntry* entry = find_spelling(word.substr(0, equals));
    // --check-build takes no value and may have one.
    if (entry != nullptr && entry->id == OptionId::kCheckBuild)
      return {&entry_of(OptionId::kCheckBox), word.substr(equals + 1)};
    // A flag with a value stays as it is: the parser refuses it and quotes the word.
    if (entry != nullptr && entry->takes_value()) return {entry, word.substr(equals + 1)};
  }

  // "-xNAME=1", "-p22"; but "-timeout" is --timeout with a dash forgotten and "-np4" is no "-n p4" of mpirun's: the
  // parser will name those.
  const bool one_dash = word.size() > 2 && word[1] != '-';
  if (one_dash && find_spelling("-" + std::string(word)) == nullptr) {
    const OptionEntry* entry = find_spelling(word.substr(0, 2));
    if (entry != nullptr && entry->takes_value() && entry->id != OptionId::kForeign)
      return {entry, word.substr(2)};
  }
  return {};
}

}  // namespace

SplitArgv split_argv(std::span<const std::string> words) {
  SplitArgv result;
  std::size_t next = 0;
  while (next < words.size()) {
    const std::string& word = words[next];
    if (word == "--") {
      ++next;
      break;
    }
    if (word.size() < 2 || word[0] != '-') break;
    ++next;

    const OptionWord option = take_apart(word);
    if (option.entry == nullptr) {
      result.options.push_back(word);
      continue;
    }
    const std::string canonical(canonical_spelling(*option.entry));
    result.options.push_back(canonical);
    if (!option.entry->is_available())
      result.typed.try_emplace(canonical, option.attached_value ? word.substr(0, word.find('=')) : word);
    if (option.attached_value) {
      result.options.emplace_back(*option.attached_value);
    } else if (option.entry->takes_value() && next < words.size() && words[next] != "--") {
      result.options.push_back(words[next++]);
    }
  }
  result.command.assign(words.begin() + static_cast<std::ptrdiff_t>(next), words.end());
  return result;
}

}  // namespace ddl::cli
