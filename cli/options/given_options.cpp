#include "cli/options/given_options.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>

#include <CLI/CLI.hpp>

#include "base/text.h"
#include "cli/options/option_table.h"
#include "cli/options/typing_mistakes.h"

namespace ddl::cli {

namespace {

/// One word that starts with a dash, split into option and value.
struct OptionWord {
  const OptionEntry* entry = nullptr;
  std::optional<std::string_view> attached_value;
};

OptionWord split_word(std::string_view word) {
  if (const OptionEntry* entry = find_spelling(word)) return {entry, std::nullopt};

  const std::size_t equals = word.find('=');
  if (equals != std::string_view::npos) {
    const OptionEntry* entry = find_spelling(word.substr(0, equals));
    // --check-build is a flag, but --check-build=NAME is accepted too.
    if (entry != nullptr && entry->id == OptionId::kCheckBuild)
      return {&entry_of(OptionId::kCheckCapability), word.substr(equals + 1)};
    // A flag with a value remains unchanged: the parser refuses it and quotes the word.
    if (entry != nullptr && entry->takes_value()) return {entry, word.substr(equals + 1)};
  }

  if (word.starts_with("-np") && word.find_first_not_of("0123456789", 3) == std::string_view::npos)
    return {&entry_of(OptionId::kNumProc), word.substr(3)};
  // "-xNAME=1", "-p22", "-n4"; but "-timeout" is --timeout with one dash too few, and "-nq4" is not "-n q4": the
  // parser refuses these by name.
  const bool one_dash = word.size() > 2 && word[1] != '-';
  if (one_dash && find_spelling("-" + std::string(word)) == nullptr) {
    const OptionEntry* entry = find_spelling(word.substr(0, 2));
    const bool is_number = word[2] >= '0' && word[2] <= '9';
    if (entry != nullptr && entry->takes_value() &&
        ((entry->id != OptionId::kNumProc && entry->id != OptionId::kForeign) || is_number))
      return {entry, word.substr(2)};
  }
  return {};
}

constexpr Contradiction kContradictions[] = {
    {OptionId::kTagOutput, OptionId::kNoTagOutput}, {OptionId::kVerbose, OptionId::kQuiet},
    {OptionId::kHosts, OptionId::kHostfile},        {OptionId::kMpi, OptionId::kLauncher},
    {OptionId::kRankfile, OptionId::kMapBy},        {OptionId::kRankfile, OptionId::kRanksPerNode},
};

Status refuse_unknown(const std::string& word) {
  DDL_TRY(refuse_typographic(word));
  const std::string_view first = std::string_view(word).substr(0, word.find_first_of(" \t"));
  if (first.size() < word.size() && find_spelling(first.substr(0, first.find('='))) != nullptr)
    return refuse("unknown option " + shell_quote(word) + ", which is one word with a space in it",
                  "omit the quotes: an option and its value are two words");
  const auto suggestion = suggest_option(word);
  return refuse("unknown option " + shell_quote(word), suggestion
                                                           ? "did you mean " + *suggestion + "?"
                                                           : "if it is the program's, write it behind the "
                                                             "program; ddlrun --help all lists ddlrun's own");
}

/// CLI11 throws this for an option without its value.
tl::unexpected<Error> refuse_arity(const std::vector<std::string>& options) {
  const OptionEntry* last = find_spelling(options.back());
  if (last != nullptr && last->takes_value()) {
    return refuse(display_name(*last) + " needs a value", usage_line(*last));
  }
  return refuse("an option has no value or one too many", "ddlrun --help all lists the options");
}

/// CLI11 would accept --verbose=true, and refuse --verbose=1.
Status refuse_value_of_flag(const std::vector<std::string>& options) {
  bool is_value = false;
  for (const std::string& word : options) {
    const OptionEntry* entry = find_spelling(std::string_view(word).substr(0, word.find('=')));
    const bool is_option = !std::exchange(is_value, false) && entry != nullptr;
    if (!is_option) continue;
    is_value = entry->takes_value();
    if (entry->takes_value() || word.find('=') == std::string::npos) continue;
    return refuse(display_name(*entry) + " takes no value, but " + shell_quote(word) + " gives one",
                  "write " + std::string(canonical_spelling(*entry)) + ", or omit it if that is not meant");
  }
  return {};
}

CLI::Option* define(CLI::App& app, const OptionEntry& entry) {
  const std::string name(canonical_spelling(entry));
  CLI::Option* option = nullptr;
  if (entry.takes_value()) {
    option = app.add_option(name);
    // An unavailable option is refused with and without its value.
    if (!entry.is_available()) option->expected(0, 1);
    option->allow_extra_args(false);
  } else {
    option = app.add_flag(name)->disable_flag_override();
  }
  return option->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

}  // namespace

SplitArgv split_argv(std::span<const std::string> words) {
  SplitArgv result;
  std::size_t next = 0;
  while (next < words.size()) {
    const std::string& word = words[next];
    if (word == "--") {
      result.ends_with_dashes = true;
      ++next;
      break;
    }
    if ((word.size() < 2 || word[0] != '-') && !begins_typographically(word)) break;
    ++next;

    const OptionWord option = split_word(word);
    if (option.entry == nullptr) {
      result.options.push_back(word);
      continue;
    }
    const std::string canonical(canonical_spelling(*option.entry));
    result.options.push_back(canonical);
    std::string_view typed = word;
    if (option.attached_value) typed.remove_suffix(option.attached_value->size());
    if (option.attached_value && typed.ends_with('=')) {
      typed.remove_suffix(1);
      result.bound_values.emplace_back(*option.attached_value);
    }
    result.typed.try_emplace(canonical, typed);
    const bool may_lack_value = (option.entry->rules & kOptionalValue) != 0;
    const bool has_next = next < words.size() && words[next] != "--";
    if (option.attached_value) {
      result.options.emplace_back(*option.attached_value);
    } else if (may_lack_value) {
      result.options.push_back(has_next && !words[next].starts_with('-') ? words[next++] : "");
    } else if (option.entry->takes_value() && has_next) {
      result.options.push_back(words[next++]);
      const bool has_value = next < words.size() && words[next] != "--";
      const bool is_bound = result.options.back().find('=') != std::string::npos;
      if ((option.entry->rules & kNameAndValue) != 0 && is_bound)
        result.bound_values.push_back(result.options.back());
      if ((option.entry->rules & kNameAndValue) != 0 && has_value && !is_bound)
        result.options.back() += "=" + words[next++];
    }
  }
  result.command.assign(words.begin() + static_cast<std::ptrdiff_t>(next), words.end());
  return result;
}

std::span<const Contradiction> contradictions() { return kContradictions; }

std::string GivenOptions::where(OptionId id) const {
  const auto& values = (*this)[id];
  return values.empty() ? "" : values.back().where;
}

std::string GivenOptions::typed_name(OptionId id) const {
  const auto& values = (*this)[id];
  if (!values.empty() && !values.front().name.empty()) return values.front().name;
  return std::string(canonical_spelling(entry_of(id)));
}

void GivenOptions::complete_from(GivenOptions others) {
  for (const auto& [one, other] : kContradictions) {
    if (has(one)) others[other].clear();
    if (has(other)) others[one].clear();
  }
  for (const OptionId said : kSaidByRankfile) {
    if (has(OptionId::kRankfile)) others[said].clear();
  }
  without_effect.insert(without_effect.end(), std::make_move_iterator(others.without_effect.begin()),
                        std::make_move_iterator(others.without_effect.end()));
  for (std::size_t i = 0; i < values_.size(); ++i) {
    auto& mine = values_[i];
    auto& theirs = others.values_[i];
    if (mine.empty() || static_cast<OptionId>(i) == OptionId::kExport) {
      mine.insert(mine.begin(), std::make_move_iterator(theirs.begin()),
                  std::make_move_iterator(theirs.end()));
    }
  }
}

Error unavailable(const OptionEntry& entry, const std::string& name) {
  return {ErrorCode::kInvalidArgument,
          name + (entry.id == OptionId::kForeign ? " is not an option of ddlrun" : " is not in this version"),
          std::string(entry.help)};
}

Result<GivenOptions> collect_options(const SplitArgv& split) {
  const std::vector<std::string>& options = split.options;
  DDL_TRY(refuse_value_of_flag(options));
  CLI::App app;
  app.set_help_flag();
  app.allow_extras();
  std::vector<std::pair<const OptionEntry*, CLI::Option*>> defined;
  // CLI11 compares every new option with all before it. To define those that were not given would cost 0.2 ms at
  // every start.
  for (const std::string& word : options) {
    const std::string_view name = std::string_view(word).substr(0, word.find('='));
    const OptionEntry* entry = find_spelling(name);
    if (entry == nullptr || canonical_spelling(*entry) != name) continue;
    const bool is_new =
        std::none_of(defined.begin(), defined.end(), [&](const auto& one) { return one.first == entry; });
    if (is_new) defined.emplace_back(entry, define(app, *entry));
  }

  try {
    std::vector<std::string> reversed(options.rbegin(), options.rend());  // the order that CLI11 requires
    app.parse(reversed);
  } catch (const CLI::ArgumentMismatch&) {
    return refuse_arity(options);
  } catch (const CLI::Error& error) {
    return refuse(error.what(), "ddlrun --help all lists the options");
  }

  GivenOptions given;
  Status available;
  for (const auto& [entry, option] : defined) {
    if (option->count() == 0) continue;
    const auto typed = split.typed.find(std::string(canonical_spelling(*entry)));
    const std::string name = typed != split.typed.end() ? typed->second : display_name(*entry);
    if (entry->is_available()) {
      for (const std::string& text : option->results()) given[entry->id].push_back({text, "", name});
      continue;
    }
    const bool is_zero = option->results().back() == "0";
    if (entry->id == OptionId::kWithoutEffect || (is_zero && (entry->rules & kZeroIsDefault) != 0)) {
      given.without_effect.push_back({entry, name, ""});
    } else if (available) {
      available = fail(unavailable(*entry, name));
    }
  }
  // --help and --version are obeyed even if other options are wrong.
  if (given.has(OptionId::kHelp) || given.has(OptionId::kVersion)) return given;
  DDL_TRY(available);
  if (const auto unknown = app.remaining(); !unknown.empty()) DDL_TRY(refuse_unknown(unknown.front()));
  return given;
}

}  // namespace ddl::cli
