// The simple commands of a shell script, as far as they can be found without running it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ddl::templates {

struct ShellWord {
  std::string text;     ///< without its quotes and backslashes; expansions such as $NAME or $(...) are kept
  bool quoted = false;  ///< at least a part of it
  std::vector<std::string>
      expands;  ///< names of the variables that this shell replaces in it, also in $((...))
};

struct ShellAssignment {
  std::string name;
  std::string value;
  int line = 0;
  bool appends = false;                   ///< NAME+=value
  std::vector<std::string> expands = {};  ///< as in ShellWord
};

/// A variable in a here-document that the shell replaces while it writes it.
struct ShellExpansion {
  std::string name;
  int line = 0;
  bool is_arithmetic = false;  ///< a plain NAME in $((...))
};

/// The text between two of ; & | ( ) and line ends, without words such as if, then and do.
struct ShellCommand {
  int line = 0;  ///< where it begins
  std::vector<ShellAssignment> assignments;
  std::vector<ShellWord> words;      ///< without redirections
  std::vector<std::string> outputs;  ///< files that > and >> write
  std::string here_document;         ///< its body, without the backslashes that keep $ from being expanded
  int here_document_line = 0;        ///< the body's first; 0: there is none
  std::vector<ShellExpansion> here_expansions;
  bool in_background = false;  ///< a single & ends it
  /// It runs exactly once if the shell gets there: it is not inside if, a loop, case, braces or parentheses, nor
  /// behind && or ||, nor a part of a pipeline.
  bool runs_once = true;
  bool in_function = false;

  bool is_named(std::string_view name) const { return !words.empty() && words.front().text == name; }
};

/// A comment with a line to itself.
struct ShellComment {
  int line = 0;
  bool indented = false;
  std::string text;  ///< from its # on
};

/// A line that was to go on and does not: its backslash has a blank behind it, or a comment follows it and then a line
/// of options, which the shell takes for a command.
struct BrokenContinuation {
  int line = 0;
  bool by_comment = false;
};

struct ShellText {
  std::vector<ShellCommand> commands;
  std::vector<ShellComment> comments;
  std::vector<BrokenContinuation> broken_continuations;
};

/// The last part of a path.
std::string_view file_name_of(std::string_view path);
/// Whether the program, a name or a path, is a shell.
bool is_shell(std::string_view program);

/// "NAME=value" or "NAME+=value", as in the words of export and env; nullopt for other words. Pure.
std::optional<ShellAssignment> assignment_in(const ShellWord& word, int line);

/// Pure, and takes time in proportion to the text's length. It is not a complete shell: $(...) is a part of its word,
/// and the bodies of here-documents are stored, not parsed. A quote or parenthesis that nothing closes ends with its
/// line. first_line: the number of the text's first.
ShellText read_shell(std::string_view text, int first_line = 1);

}  // namespace ddl::templates
