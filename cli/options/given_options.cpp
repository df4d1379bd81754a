#include "cli/options/given_options.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "cli/options/option_table.h"
#include "cli/options/typing_mistakes.h"

namespace ddl::cli {

namespace {

/// Finds the option that a word means.
class Spellings {
 public:
  explicit Spellings(bool are_of_sbatch) : are_of_sbatch_(are_of_sbatch) {}

  bool are_of_sbatch() const { return are_of_sbatch_; }
  const OptionEntry* find(std::string_view word) const {
    if (const SbatchSpelling* one = of_sbatch(word)) return &entry_of(one->id);
    return find_spelling(word);
  }
  /// "--nodelist" for "-w", which becomes an option for --sbatch; "" for others.
  std::string_view passed_on(std::string_view name) const {
    const SbatchSpelling* one = of_sbatch(name);
    return one == nullptr ? "" : one->passed_on;
  }

 private:
  const SbatchSpelling* of_sbatch(std::string_view word) const {
    return are_of_sbatch_ ? find_sbatch_spelling(word) : nullptr;
  }
  bool are_of_sbatch_;
};

/// One word that starts with a dash, with its value if that is attached.
TypedOption split_word(const std::string& word, const Spellings& spellings) {
  if (const OptionEntry* entry = spellings.find(word)) return {entry, word};
  if (const std::size_t equals = word.find('='); equals != std::string::npos) {
    const OptionEntry* entry = spellings.find(word.substr(0, equals));
    // --check-build is a flag, but --check-build=NAME is accepted too.
    if (entry != nullptr && entry->id == OptionId::kCheckBuild) entry = &entry_of(OptionId::kCheckCapability);
    if (entry != nullptr && entry->takes_value())
      return {entry, word.substr(0, equals), word.substr(equals + 1), true};
  }
  if (word.starts_with("-np") && word.find_first_not_of("0123456789", 3) == std::string::npos)
    return {&entry_of(OptionId::kNumProc), "-np", word.substr(3)};
  // "-xNAME=1", "-p22", "-n4"; but "-timeout" is --timeout with one dash too few, and "-nq4" is not "-n q4".
  if (word.size() > 2 && word[1] != '-' && find_spelling("-" + word) == nullptr) {
    const OptionEntry* entry = spellings.find(word.substr(0, 2));
    const bool is_number = word[2] >= '0' && word[2] <= '9';
    if (entry != nullptr && entry->takes_value() &&
        ((entry->id != OptionId::kNumProc && entry->id != OptionId::kForeign) || is_number))
      return {entry, word.substr(0, 2), word.substr(2)};
  }
  return {nullptr, word};
}

/// The option that an unknown one is close to; null if there is none.
const OptionEntry* meant_by(const std::string& word) {
  const auto suggestion = suggest_option(word);
  return suggestion ? find_spelling(*suggestion) : nullptr;
}

SplitArgv split_words(std::span<const std::string> words, const Spellings& spellings) {
  SplitArgv result;
  std::size_t next = 0;
  const auto has_next = [&] { return next < words.size() && words[next] != "--"; };
  while (has_next()) {
    const std::string& word = words[next];
    if ((word.size() < 2 || word[0] != '-') && !begins_typographically(word)) break;
    ++next;
    TypedOption& option = result.options.emplace_back(split_word(word, spellings));
    if (option.entry == nullptr && spellings.are_of_sbatch() && word.find('=') == std::string::npos) {
      const OptionEntry* meant = meant_by(word);
      if (meant != nullptr && meant->takes_value() && has_next() && !words[next].starts_with('-'))
        option.value = words[next++];
      continue;
    }
    if (option.entry == nullptr || !option.entry->takes_value()) continue;
    if (!option.value) {
      const bool may_lack_value = (option.entry->rules & kOptionalValue) != 0;
      if (may_lack_value) option.value = "";
      if (!has_next() || (may_lack_value && words[next].starts_with('-'))) continue;
      option.value = words[next++];
      if ((option.entry->rules & kNameAndValue) != 0) {
        option.is_bound = option.value->find('=') != std::string::npos;
        if (!option.is_bound && has_next()) *option.value += "=" + words[next++];
      }
    }
    if (const std::string_view name = spellings.passed_on(option.name); !name.empty())
      option.value = std::string(name) + "=" + *option.value;
  }
  result.ends_with_dashes = next < words.size() && words[next] == "--";
  if (result.ends_with_dashes) ++next;
  result.command.assign(words.begin() + next, words.end());
  return result;
}

constexpr Contradiction kContradictions[] = {
    {OptionId::kTagOutput, OptionId::kNoTagOutput}, {OptionId::kVerbose, OptionId::kQuiet},
    {OptionId::kHosts, OptionId::kHostfile},        {OptionId::kMpi, OptionId::kLauncher},
    {OptionId::kRankfile, OptionId::kMapBy},        {OptionId::kRankfile, OptionId::kRanksPerNode},
    {OptionId::kScaling, OptionId::kNumProc},       {OptionId::kScaling, OptionId::kRankfile},
    {OptionId::kScaling, OptionId::kTfRoles},       {OptionId::kScaling, OptionId::kMxnetServers},
    {OptionId::kScaling, OptionId::kTimelineFile},  {OptionId::kScaling, OptionId::kBaseline},
    {OptionId::kScaling, OptionId::kStdin},         {OptionId::kScaling, OptionId::kMetricsHistory},
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

/// "--verbose=1".
Status refuse_value_of_flag(const std::string& word) {
  const OptionEntry* flag = find_spelling(std::string_view(word).substr(0, word.find('=')));
  if (flag == nullptr) return {};
  return refuse(display_name(*flag) + " takes no value, but " + shell_quote(word) + " gives one",
                "write " + std::string(canonical_spelling(*flag)) + ", or omit it if that is not meant");
}

/// Keeps the option if it changes nothing here; else refuses it.
Status read_foreign(const TypedOption& option, std::vector<OptionWithoutEffect>& without_effect) {
  const OptionEntry& entry = *option.entry;
  if (entry.id != OptionId::kWithoutEffect) return fail(unavailable(entry, option.name));
  const bool is_new = std::none_of(without_effect.begin(), without_effect.end(),
                                   [&entry](const auto& one) { return one.entry == &entry; });
  if (is_new) without_effect.push_back({&entry, option.name, ""});
  return {};
}

}  // namespace

SplitArgv split_argv(std::span<const std::string> words) {
  SplitArgv split = split_words(words, Spellings(false));
  const bool is_script = std::any_of(split.options.begin(), split.options.end(), [](const TypedOption& one) {
    return one.entry != nullptr && one.entry->id == OptionId::kSlurm;
  });
  return is_script ? split_words(words, Spellings(true)) : split;
}

std::string corrected_line(const SplitArgv& split) {
  std::vector<std::string> words = {"ddlrun"};
  for (const TypedOption& option : split.options) {
    const bool is_known = option.entry != nullptr;
    const std::size_t equals = option.name.find('=');
    const std::string value = option.value                  ? *option.value
                              : equals == std::string::npos ? ""
                                                            : option.name.substr(equals + 1);
    words.push_back(is_known ? option.name : suggest_option(option.name).value_or(option.name));
    // What is passed on to sbatch has its name before the value.
    const SbatchSpelling* sbatch = find_sbatch_spelling(option.name);
    const bool is_passed_on = sbatch != nullptr && is_known && option.entry->id == OptionId::kSbatch;
    if (option.value || (!is_known && equals != std::string::npos))
      words.push_back(is_passed_on ? value.substr(sbatch->passed_on.size() + 1) : value);
  }
  if (split.ends_with_dashes) words.emplace_back("--");
  words.insert(words.end(), split.command.begin(), split.command.end());
  for (std::string& word : words) word = shell_quote(word);
  return join(words, " ");
}

SplitArgv split_srun(std::span<const std::string> words) { return split_words(words, Spellings(true)); }

std::span<const Contradiction> contradictions() { return kContradictions; }

bool GivenOptions::is_typed(OptionId id) const {
  const auto& values = (*this)[id];
  return std::any_of(values.begin(), values.end(),
                     [](const GivenValue& value) { return value.where.empty(); });
}

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
  GivenOptions given;
  std::vector<WrongOption> incomplete, unavailable_ones, unknown_ones;
  for (const TypedOption& option : split.options) {
    if (option.entry == nullptr) {
      if (const Status flag = refuse_value_of_flag(option.name); !flag) {
        incomplete.push_back({flag.error(), ""});
        continue;
      }
      if (const Status known = refuse_unknown(option.name); !known)
        unknown_ones.push_back({known.error(), suggest_option(option.name).value_or("")});
    } else if (!option.entry->is_available()) {
      if (const Status accepted = read_foreign(option, given.without_effect); !accepted)
        unavailable_ones.push_back({accepted.error(), ""});
    } else if (option.entry->takes_value() && !option.value) {
      const Status refused =
          refuse(display_name(*option.entry) + " needs a value", usage_line(*option.entry));
      incomplete.push_back({refused.error(), ""});
    } else {
      given[option.entry->id].push_back({option.value.value_or(""), "", option.name, option.is_bound});
    }
  }
  // --help and --version are obeyed even if other options are wrong.
  if (given.has(OptionId::kHelp) || given.has(OptionId::kVersion)) return given;
  given.wrong = std::move(incomplete);
  for (const auto& more : {unavailable_ones, unknown_ones})
    given.wrong.insert(given.wrong.end(), more.begin(), more.end());
  if (!given.wrong.empty() && !given.has(OptionId::kSlurm)) return fail(given.wrong.front().error);
  return given;
}

}  // namespace ddl::cli
