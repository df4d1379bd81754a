#include "cli/options/typing_mistakes.h"

#include <algorithm>
#include <iterator>

#include "base/text.h"
#include "cli/options/option_table.h"
#include "cli/options/option_values.h"

namespace ddl::cli {

namespace {

struct Typographic {
  std::string_view bytes;
  std::string_view meant;
};

// Hyphen, non-breaking hyphen, figure dash, en dash, em dash (in word processors, two hyphens), horizontal bar, minus.
constexpr Typographic kDashes[] = {{"\u2010", "-"},  {"\u2011", "-"},  {"\u2012", "-"}, {"\u2013", "-"},
                                   {"\u2014", "--"}, {"\u2015", "--"}, {"\u2212", "-"}};
constexpr Typographic kQuotes[] = {{"\u201c", "\""}, {"\u201d", "\""}, {"\u201e", "\""}, {"\u00ab", "\""},
                                   {"\u00bb", "\""}, {"\u2018", "'"},  {"\u2019", "'"},  {"\u201a", "'"}};

template <std::size_t N>
const Typographic* first_of(const Typographic (&list)[N], std::string_view text) {
  const auto* found = std::find_if(std::begin(list), std::end(list),
                                   [text](const Typographic& one) { return text.starts_with(one.bytes); });
  return found == std::end(list) ? nullptr : found;
}

/// The word with plain dashes at its beginning: "—np" becomes "--np".
std::string with_plain_dashes(std::string_view word) {
  std::string dashes;
  while (!word.empty()) {
    const Typographic* dash = first_of(kDashes, word);
    if (dash == nullptr && word.front() != '-') break;
    dashes += dash == nullptr ? "-" : dash->meant;
    word.remove_prefix(dash == nullptr ? 1 : dash->bytes.size());
  }
  return dashes + std::string(word);
}

/// subject: "--job-name: “a", or the word alone.
Status refuse_quote(const std::string& subject, std::string_view word) {
  if (first_of(kQuotes, word) == nullptr) return {};
  return refuse(subject + " begins with a quote that is not a shell's, as word processors write it",
                "type the quotes again, as \" or '");
}

/// The option that was meant, with as many dashes as it has; "" if there is none.
std::string meant_option(std::string_view word) {
  const std::string plain = with_plain_dashes(word.substr(0, word.find('=')));
  const std::size_t name = std::min(plain.find_first_not_of('-'), plain.size());
  for (const std::string& one : {plain, "-" + plain.substr(name), "--" + plain.substr(name)}) {
    if (find_spelling(one) != nullptr) return one;
  }
  return suggest_option(plain).value_or("");
}

/// Options whose value is a part of a command line, where an option is not a mistake.
bool takes_words(OptionId id) {
  using enum OptionId;
  return id == kSbatch || id == kSrunOption || id == kContainerOption || id == kSshArgs || id == kMpiArgs ||
         id == kBindingArgs || id == kBeforeModules || id == kSetup || id == kAfter || id == kLaunchAgent;
}

bool names_a_file(const OptionEntry& entry) {
  constexpr std::string_view kFiles[] = {"FILE",  "DIR",  "NAME|FILE", "NAME|DIR",
                                         "IMAGE", "PATH", "PATTERN",   "DIR[:DIR]"};
  // No synthetic node of --topology begins as a path does.
  return entry.id == OptionId::kTopology ||
         std::find(std::begin(kFiles), std::end(kFiles), entry.value) != std::end(kFiles);
}

/// The option in the place of the value, or of one of the two words NAME and VALUE; "" if there is none. Open MPI's
/// parameters with options of ssh and the like are named ..._args.
std::string_view option_in(const OptionEntry& entry, const GivenValue& value) {
  const std::string_view text = value.text;
  const auto is_option = [](std::string_view word) {
    return word.size() > 1 && word[0] == '-' && find_spelling(word) != nullptr;
  };
  const std::size_t equals = text.find('=');
  const bool has_name = (entry.rules & kNameAndValue) != 0;
  if (is_option(text)) return value.is_bound && !has_name ? "" : text;
  if (!has_name || equals == std::string_view::npos) return "";
  const std::string_view name = text.substr(0, equals);
  if (is_option(name)) return name;
  if (value.is_bound || name.ends_with("_args")) return "";
  return is_option(text.substr(equals + 1)) ? text.substr(equals + 1) : "";
}

/// What to write if the option is the value after all.
std::string how_to_give(const OptionEntry& entry, const GivenValue& value, const std::string& option) {
  if (names_a_file(entry)) return "for a file of this name write ./" + option;
  const bool takes_any_word = (entry.rules & kNameAndValue) != 0 && entry.id != OptionId::kCooldown;
  if (!takes_any_word || value.text.starts_with('-')) return usage_line(entry);
  return usage_line(entry) + "; for this value write " + value.name + " " + shell_quote(value.text);
}

Status refuse_value(const OptionEntry& entry, const GivenValue& value) {
  DDL_TRY(refuse_quote(value.name + ": " + value.text, value.text));
  const std::string option(option_in(entry, value));
  if (option.empty() || takes_words(entry.id)) return {};
  return refuse(value.name + " needs a value, but the option " + option + " follows",
                how_to_give(entry, value, option));
}

}  // namespace

bool begins_typographically(std::string_view word) {
  return first_of(kDashes, word) != nullptr || first_of(kQuotes, word) != nullptr;
}

Status refuse_typographic(const std::string& word) {
  DDL_TRY(refuse_quote(word, word));
  if (with_plain_dashes(word) == word) return {};
  const std::string meant = meant_option(word);
  return refuse(
      word + " begins with a dash that is not a hyphen, as web pages and word processors write it",
      meant.empty() ? "type the dash again; a program of this name is given after --" : "type " + meant);
}

Status refuse_mistyped_value(const GivenOptions& given) {
  for (const OptionEntry& entry : option_table()) {
    if (!entry.takes_value()) continue;
    for (const GivenValue& value : given[entry.id]) {
      DDL_TRY(refuse_value(entry, value));
    }
  }
  return {};
}

Status refuse_unexpanded(const GivenOptions& given) {
  for (const OptionEntry& entry : option_table()) {
    if (!names_a_file(entry)) continue;
    for (const GivenValue& value : given[entry.id]) {
      const bool is_home = value.text.starts_with('~');
      // --lint explains those of a directive.
      const bool is_variable = value.text.starts_with('$') && entry.value != "PATTERN";
      if (!is_home && !is_variable) continue;
      const std::string name = value.where.empty() ? value.name : value.where + ": " + display_name(entry);
      const std::string begins = name + ": " + in_quotes(value.text) + " begins with ";
      if (is_variable)
        return refuse(begins + "a variable that no shell has replaced",
                      "write its value, or on the command line \"$NAME/...\" in double quotes");
      return refuse(begins + "~, which no shell has replaced here",
                    value.where.empty()
                        ? "write $HOME for ~: a shell replaces ~ only where a word begins, and not in quotes"
                        : "write the whole path");
    }
  }
  return {};
}

}  // namespace ddl::cli
