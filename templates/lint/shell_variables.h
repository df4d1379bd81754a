// The variables of a script, as far as their values are certain without running it.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "templates/lint/shell_commands.h"

namespace ddl::templates {

/// An assignment of the script, or of one that it writes.
struct ScriptAssignment : ShellAssignment {
  /// Of ScriptText::commands, if that command sets the variable of the script's own shell, and runs exactly once.
  std::optional<std::size_t> command = std::nullopt;
};

/// Built in the order of the script. The places below are indices of ScriptText::commands: where a value is used;
/// nullopt: unknown, as in a function, which may be called at any place.
class ShellVariables {
 public:
  /// The value that the variable then has is computed at once from the one before, so that a chain of many
  /// assignments costs what their values are long.
  void add(ScriptAssignment one);
  /// Takes the names that the command sets otherwise (read, for and the like), and whether it reads other text.
  void add_setter(const ShellCommand& command);

  const std::vector<ScriptAssignment>& all() const { return all_; }
  /// The indices in all() of the name's assignments, in their order.
  const std::vector<std::size_t>& indices_of(std::string_view name) const;
  /// The first assignment to the variable; null if there is none.
  const ScriptAssignment* first(std::string_view name) const;

  /// Whether anything but an assignment may set the variable: a file that the script reads, read, for, or the shell
  /// that runs it. Only false is certain.
  bool may_be_set_otherwise(std::string_view name) const;

  /// The value with all of $NAME and ${NAME} replaced that the script assigns once, or in commands that each run
  /// exactly once and in the script's order; others stay, and so do $(...) and ${NAME:-...} with what is in them.
  /// unset: receives the names that the script never sets, or only later, each once.
  std::string expanded(const std::string& value, std::optional<std::size_t> place,
                       std::vector<std::string>& unset) const;
  /// The value; if it is $NAME or ${NAME} and the script assigns that variable once, what it assigns.
  std::string resolved(const std::string& value) const;
  /// The words with variables and arrays replaced as far as expanded() can, and split as the shell does.
  std::vector<ShellWord> expanded_words(const std::vector<ShellWord>& words,
                                        std::optional<std::size_t> place);

  /// Bytes of values that were computed so far. It is limited: further values are unknown.
  std::size_t work() const { return work_; }

 private:
  std::optional<std::string> value_of(std::string_view name, std::optional<std::size_t> place) const;
  std::vector<ShellWord> elements_of(std::string_view name, std::optional<std::size_t> place) const;
  bool is_set_only_behind(std::string_view name, std::size_t place) const;

  struct Variable {
    std::vector<std::size_t> indices;  ///< of all_
    bool is_kept = true;               ///< each assignment runs exactly once
    bool is_array = false;
  };
  std::map<std::string, Variable, std::less<>> variables_;
  std::vector<ScriptAssignment> all_;
  std::vector<std::optional<std::string>> values_;  ///< behind each of all_
  std::set<std::string, std::less<>> set_by_commands_;
  bool reads_other_text_ = false;  ///< a file or text that may set any variable
  std::size_t work_ = 0;
};

/// The text with each $(...), `...` and ${NAME:-...} replaced by $, which says nothing about its value. Pure.
std::string without_substitutions(std::string_view text);

}  // namespace ddl::templates
