#include "templates/lint/shell_variables.h"

#include <algorithm>
#include <array>
#include <utility>

namespace ddl::templates {
namespace {

bool is_part_of_name(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
}

/// A $NAME, ${NAME} or other expansion in a text.
struct VariableReference {
  std::size_t at = 0;
  std::size_t size = 0;
  std::string_view name;  ///< "" for other expansions, such as $(...) and ${NAME:-1}, which size spans
};

/// Where what opens at a position ends; the text's end if nothing closes it.
std::size_t end_of_nested(std::string_view text, std::size_t from, char opens, char closes) {
  int depth = 0;
  for (std::size_t i = from; i < text.size(); ++i) {
    if (text[i] == opens) ++depth;
    if (text[i] == closes && --depth == 0) return i + 1;
  }
  return text.size();
}

/// The first expansion from a position on; nullopt if there is none.
std::optional<VariableReference> next_reference(std::string_view text, std::size_t from) {
  const std::size_t at = text.find_first_of("$`", from);
  if (at == std::string_view::npos) return std::nullopt;
  if (text[at] == '`') {
    const std::size_t end = text.find('`', at + 1);
    return VariableReference{at, (end == std::string_view::npos ? text.size() : end + 1) - at, {}};
  }
  const bool braced = text.substr(at + 1).starts_with('{');
  const std::size_t start = at + (braced ? 2 : 1);
  std::size_t end = start;
  while (end < text.size() && is_part_of_name(text[end])) ++end;
  const std::string_view name = text.substr(start, end - start);
  const bool is_plain = !name.empty() && (name[0] < '0' || name[0] > '9') &&
                        (!braced || (end < text.size() && text[end] == '}'));
  if (is_plain) return VariableReference{at, end + (braced ? 1 : 0) - at, name};
  if (text.substr(at + 1).starts_with('('))
    return VariableReference{at, end_of_nested(text, at + 1, '(', ')') - at, {}};
  if (braced) return VariableReference{at, end_of_nested(text, at + 1, '{', '}') - at, {}};
  return VariableReference{at, 1, {}};
}

/// The assigned value, in which own is the variable's value before; nullopt if it depends on that in another way.
std::optional<std::string> appended(const ShellAssignment& one, const std::optional<std::string>& own) {
  const bool has_own = std::find(one.expands.begin(), one.expands.end(), one.name) != one.expands.end();
  if ((has_own || one.appends) && !own) return std::nullopt;
  std::string value = one.appends ? *own : "";
  if (!has_own) return value + one.value;
  std::size_t done = 0;
  bool is_replaced = false;
  while (const auto reference = next_reference(one.value, done)) {
    value += one.value.substr(done, reference->at - done);
    const bool is_own = reference->name == one.name;
    const std::string text = one.value.substr(reference->at, reference->size);
    if (reference->name.empty() && text.find(one.name) != std::string::npos) return std::nullopt;
    value += is_own ? *own : text;
    is_replaced = is_replaced || is_own;
    done = reference->at + reference->size;
  }
  if (!is_replaced) return std::nullopt;
  return value + one.value.substr(done);
}

/// Splits at blanks that are not in a $(...) or the like.
std::vector<std::string> split_at_blanks(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\n";
  std::vector<std::string> parts;
  std::size_t at = 0;
  auto reference = next_reference(text, 0);
  while ((at = text.find_first_not_of(kBlanks, at)) != std::string_view::npos) {
    std::size_t end = std::min(text.find_first_of(kBlanks, at), text.size());
    while (reference && reference->at < end) {
      const std::size_t behind = reference->at + reference->size;
      if (behind > end) end = std::min(text.find_first_of(kBlanks, behind), text.size());
      reference = next_reference(text, behind);
    }
    parts.emplace_back(text.substr(at, end - at));
    at = end;
  }
  return parts;
}

/// "NAME" of "${NAME[@]}" and "${NAME[*]}"; otherwise "".
std::string_view array_name(std::string_view word) {
  if (!word.starts_with("${") || (!word.ends_with("[@]}") && !word.ends_with("[*]}"))) return "";
  const std::string_view name = word.substr(2, word.size() - 6);
  return std::all_of(name.begin(), name.end(), is_part_of_name) ? name : "";
}

/// Limits, so that no script takes long: more assignments to one variable than any list of CPUs has, and more bytes of
/// values than any real script.
constexpr std::size_t kMaxAssignments = 64;
constexpr std::size_t kMaxValueBytes = 1 << 14;
constexpr std::size_t kMaxWork = 1 << 22;

}  // namespace

void ShellVariables::add(ScriptAssignment one) {
  Variable& variable = variables_.try_emplace(one.name).first->second;
  const bool is_array = one.value.starts_with('(');
  variable.is_array = variable.is_array || is_array;
  variable.is_kept = variable.is_kept && one.command;
  std::optional<std::string> value;
  const bool is_chain = !variable.indices.empty();
  const bool is_known =
      variable.is_kept && !is_array && variable.indices.size() < kMaxAssignments && work_ < kMaxWork;
  if (is_known) {
    value = appended(one, is_chain ? values_[variable.indices.back()] : std::nullopt);
    if (value) work_ += value->size();
    if (value && value->size() > kMaxValueBytes) value = std::nullopt;
  }
  variable.indices.push_back(all_.size());
  all_.push_back(std::move(one));
  values_.push_back(std::move(value));
}

void ShellVariables::add_setter(const ShellCommand& command) {
  constexpr std::array<std::string_view, 9> kSetters = {"for",     "read",   "mapfile", "printf", "readarray",
                                                        "declare", "select", "getopts", "unset"};
  if (command.words.empty()) return;
  const std::string_view name = command.words.front().text;
  if (name == "source" || name == "." || name == "eval") reads_other_text_ = true;
  if (std::find(kSetters.begin(), kSetters.end(), name) == kSetters.end()) return;
  for (const ShellWord& word : command.words) set_by_commands_.insert(word.text);
}

const std::vector<std::size_t>& ShellVariables::indices_of(std::string_view name) const {
  static const std::vector<std::size_t> kNoIndices;
  const auto found = variables_.find(name);
  return found == variables_.end() ? kNoIndices : found->second.indices;
}

const ScriptAssignment* ShellVariables::first(std::string_view name) const {
  const auto& indices = indices_of(name);
  return indices.empty() ? nullptr : &all_[indices.front()];
}

std::optional<std::string> ShellVariables::value_of(std::string_view name,
                                                    std::optional<std::size_t> place) const {
  const auto found = variables_.find(name);
  if (found == variables_.end() || found->second.indices.size() > kMaxAssignments) return std::nullopt;
  const Variable& variable = found->second;
  const bool is_certain = variable.is_kept && !variable.is_array && place;
  if (variable.indices.size() == 1 && !is_certain) return all_[variable.indices.front()].value;
  if (!is_certain || set_by_commands_.contains(name)) return std::nullopt;
  std::optional<std::string> value;
  for (const std::size_t index : variable.indices) {
    if (*all_[index].command >= *place) break;
    value = values_[index];
    if (!value) return std::nullopt;
  }
  return value;
}

std::vector<ShellWord> ShellVariables::elements_of(std::string_view name,
                                                   std::optional<std::size_t> place) const {
  const auto found = variables_.find(name);
  if (found == variables_.end() || found->second.indices.size() > kMaxAssignments) return {};
  const Variable& variable = found->second;
  if (variable.indices.size() > 1 && (!variable.is_kept || !place || set_by_commands_.contains(name)))
    return {};
  std::vector<ShellWord> elements;
  for (const std::size_t index : variable.indices) {
    const ScriptAssignment& one = all_[index];
    if (place && one.command && *one.command >= *place) break;
    if (!one.value.starts_with('(') || !one.value.ends_with(')')) return {};
    if (!one.appends) elements.clear();
    const std::string_view inside = std::string_view(one.value).substr(1, one.value.size() - 2);
    for (ShellCommand& line : read_shell(inside, one.line).commands) {
      for (ShellAssignment& element : line.assignments)
        elements.push_back(
            {element.name + (element.appends ? "+=" : "=") + element.value, true, element.expands});
      std::move(line.words.begin(), line.words.end(), std::back_inserter(elements));
    }
  }
  return elements;
}

std::string ShellVariables::resolved(const std::string& value) const {
  const auto reference = next_reference(value, 0);
  if (!reference || reference->at != 0 || reference->size != value.size() || reference->name.empty())
    return value;
  return value_of(reference->name, std::nullopt).value_or(value);
}

bool ShellVariables::is_set_only_behind(std::string_view name, std::size_t place) const {
  const auto& indices = indices_of(name);
  return !indices.empty() && std::all_of(indices.begin(), indices.end(), [&](std::size_t index) {
    return all_[index].command && *all_[index].command > place;
  });
}

bool ShellVariables::may_be_set_otherwise(std::string_view name) const {
  constexpr std::array<std::string_view, 4> kOfOthers = {"SLURM_", "SBATCH_", "SRUN_", "BASH"};
  constexpr std::array<std::string_view, 8> kOfShells = {"HOME", "USER",   "PWD",      "OLDPWD",
                                                         "PATH", "TMPDIR", "HOSTNAME", "RANDOM"};
  if (std::any_of(kOfOthers.begin(), kOfOthers.end(), [&](auto start) { return name.starts_with(start); }) ||
      std::find(kOfShells.begin(), kOfShells.end(), name) != kOfShells.end())
    return true;
  return reads_other_text_ || set_by_commands_.contains(name);
}

std::string ShellVariables::expanded(const std::string& value, std::optional<std::size_t> place,
                                     std::vector<std::string>& unset) const {
  std::string text = value;
  std::size_t at = 0;
  // How much of the end of the text is value's own. What a variable contains was expanded where it was assigned, and
  // not here.
  std::size_t own = text.size();
  // A variable may contain others; one that contains itself ends with the limit.
  constexpr int kMaxVariables = 32;
  constexpr std::size_t kMaxTextBytes = 1 << 16;
  for (int round = 0; round < kMaxVariables && text.size() < kMaxTextBytes; ++round) {
    const auto reference = next_reference(text, at);
    if (!reference) break;
    at = reference->at;
    if (reference->name.empty()) {
      at += reference->size;
      continue;
    }
    const std::string name(reference->name);
    const std::size_t rest = text.size() - at - reference->size;
    const bool is_own = rest < own;
    const auto used_at = is_own ? place : std::nullopt;
    own = std::min(own, rest);
    const auto held = value_of(name, used_at);
    const bool is_unset = !may_be_set_otherwise(name) &&
                          (first(name) == nullptr || (used_at && is_set_only_behind(name, *used_at)));
    if (is_unset && std::find(unset.begin(), unset.end(), name) == unset.end()) unset.push_back(name);
    if (held) {
      text.replace(at, reference->size, *held);
      continue;
    }
    // Its value where the outer variable was assigned may be another one than here: it is not looked up again.
    const bool is_same = is_own || first(name) == nullptr;
    const std::string kept = is_same ? text.substr(at, reference->size) : "${" + name + ":-}";
    text.replace(at, reference->size, kept);
    at += kept.size();
  }
  return text;
}

std::vector<ShellWord> ShellVariables::expanded_words(const std::vector<ShellWord>& words,
                                                      std::optional<std::size_t> place) {
  std::vector<ShellWord> result;
  const auto add = [&](const ShellWord& word) {
    std::vector<std::string> unset;
    const bool may_change = word.text.find('$') != std::string::npos && work_ < kMaxWork;
    std::string text = may_change ? expanded(word.text, place, unset) : word.text;
    if (text == word.text) return result.push_back(word);
    work_ += text.size();
    ShellWord changed{std::move(text), word.quoted, word.expands};
    // What an assignment in double quotes contains, its own shell has replaced there.
    for (const std::string& name : word.expands) {
      for (const std::size_t index : indices_of(name)) {
        const auto& inner = all_[index].expands;
        if (changed.expands.size() < kMaxAssignments)
          changed.expands.insert(changed.expands.end(), inner.begin(), inner.end());
      }
    }
    if (word.quoted) return result.push_back(std::move(changed));
    for (std::string& part : split_at_blanks(changed.text))
      result.push_back({std::move(part), false, changed.expands});
  };
  for (const ShellWord& word : words) {
    const std::string_view array = array_name(word.text);
    const std::vector<ShellWord> elements =
        array.empty() || work_ >= kMaxWork ? std::vector<ShellWord>() : elements_of(array, place);
    if (elements.empty()) {
      add(word);
      continue;
    }
    for (const ShellWord& element : elements) {
      work_ += element.text.size();
      add(element);
    }
  }
  return result;
}

std::string without_substitutions(std::string_view text) {
  std::string result;
  std::size_t done = 0;
  while (const auto reference = next_reference(text, done)) {
    result += text.substr(done, reference->at - done);
    result += reference->name.empty() ? std::string_view("$") : text.substr(reference->at, reference->size);
    done = reference->at + reference->size;
  }
  return result += text.substr(done);
}

}  // namespace ddl::templates
