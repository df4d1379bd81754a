#include "templates/lint/shell_commands.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/environment.h"

namespace ddl::templates {
namespace {

constexpr std::size_t kNone = std::string_view::npos;

// Words after which another command begins.
constexpr std::array<std::string_view, 10> kKeywords = {"if",    "then",  "else", "elif", "do",
                                                        "while", "until", "!",    "{",    "time"};

bool is_name_part(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
}

bool is_number(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

/// "NAME" of "NAME..." or "{NAME...}", the text behind a $; "" for $(...), $1 and the like.
std::string_view expanded_name(std::string_view behind) {
  if (behind.starts_with('{')) behind.remove_prefix(1);
  std::size_t length = 0;
  while (length < behind.size() && is_name_part(behind[length])) ++length;
  const std::string_view name = behind.substr(0, length);
  return is_variable_name(name) ? name : std::string_view();
}

// So that a text with many $(( that nothing closes takes no longer.
constexpr std::size_t kMaxArithmetic = 1024;

/// The expression in "((expression))...", the text behind a $; "" where something else begins, such as a subshell in
/// $(...), or the expression does not end on its line.
std::string_view arithmetic(std::string_view behind) {
  if (!behind.starts_with("((")) return "";
  int depth = 2;
  for (std::size_t i = 2; i + 1 < std::min(behind.size(), kMaxArithmetic) && behind[i] != '\n'; ++i) {
    if (behind[i] == '(') ++depth;
    if (behind[i] == ')' && --depth == 1) return behind[i + 1] == ')' ? behind.substr(2, i - 2) : "";
  }
  return "";
}

/// The names that stand without $ in an arithmetic expression, which are variables too.
std::vector<std::string> plain_names(std::string_view expression) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < expression.size(); ++i) {
    const std::size_t start = i;
    while (i < expression.size() && (is_name_part(expression[i]) || expression[i] == '#')) ++i;
    const std::string_view word = expression.substr(start, i - start);
    const char before = start > 0 ? expression[start - 1] : ' ';
    if (is_variable_name(word) && before != '$' && before != '{') names.emplace_back(word);
  }
  return names;
}

class Reader {
 public:
  Reader(std::string_view text, int first_line) : text_(text), line_(first_line) {}

  // A word or a redirection begins a command. The end of a quote or parenthesis is searched only once, so that the
  // time is proportional to the text.
  ShellText read() {
    while (at_ < text_.size()) read_one();
    end_command();
    return std::move(result_);
  }

 private:
  struct Word {
    ShellWord word;
    std::size_t equals = kNone;  ///< of the first unquoted one, where nothing quoted is in front of it
  };
  /// What has begun and not ended: 'i'f, a 'l'oop, 'c'ase, '{' or '('.
  struct Opened {
    char kind = '\0';
    bool is_function = false;
  };
  struct HereDocument {
    std::size_t command = 0;
    std::string end;
    bool literal = false;
    bool strips_tabs = false;
  };

  char peek(std::size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }
  bool is_at(std::string_view what) const { return text_.substr(at_, what.size()) == what; }

  void read_one() {
    const char c = peek();
    if (c == '\n') {
      end_line();
    } else if (c == ' ' || c == '\t' || c == '\r') {
      ++at_;
    } else if (is_at("\\\n")) {
      at_ += 2;
      ++line_;
      continued_at_ = at_;
    } else if (c == '#') {
      read_comment();
    } else if (is_at("((") && command_.words.empty()) {
      skip_arithmetic();
    } else if (is_at("&>")) {
      ++at_;
      read_redirection();
    } else if (c == '<' || c == '>') {
      read_redirection();
    } else if (is_operator(c)) {
      read_operator(c);
    } else {
      begin_command();
      const int line = line_;
      add_word(read_word(), line);
    }
  }

  static bool is_operator(char c) { return c == ';' || c == '&' || c == '|' || c == '(' || c == ')'; }
  static bool ends_word(char c) {
    return c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '<' || c == '>' || is_operator(c);
  }

  void read_operator(char c) {
    ++at_;
    // The second character of &&, ||, |& and ;& ends no further command. A single & puts a command into the
    // background.
    const bool is_double = c != '(' && c != ')' && (peek() == '&' || (c == '|' && peek() == '|'));
    if (is_double) ++at_;
    if (c == '&' && !is_double) command_.in_background = true;
    const bool is_pipe = c == '|' && !(is_double && text_[at_ - 1] == '|');
    if (is_pipe || command_.in_background) command_.runs_once = false;
    end_command();
    if (is_double || is_pipe) may_be_left_out_ = true;
    if (c == '(') {
      open('(');
      parenthesis_ = at_;
    } else if (c == ')') {
      const std::string_view inside = text_.substr(parenthesis_, at_ - 1 - parenthesis_);
      function_begins_ = close('(') && inside.find_first_not_of(" \t") == kNone;
      parenthesis_ = at_;
    }
  }

  void open(char kind) {
    opened_.push_back({kind, function_begins_});
    functions_ += function_begins_ ? 1 : 0;
    function_begins_ = false;
  }
  /// Whether the last that has begun is of this kind, and ends here.
  bool close(char kind) {
    if (opened_.empty() || opened_.back().kind != kind) return false;
    functions_ -= opened_.back().is_function ? 1 : 0;
    opened_.pop_back();
    return true;
  }
  /// For the first word of a command, without quotes.
  void open_or_close(std::string_view word) {
    if (word == "if") open('i');
    if (word == "while" || word == "until" || word == "for" || word == "select") open('l');
    if (word == "case") open('c');
    if (word == "{") open('{');
    if (word == "fi") close('i');
    if (word == "done") close('l');
    if (word == "esac") close('c');
    if (word == "}") close('{');
  }

  void end_line() {
    end_command();
    ++at_;
    ++line_;
    for (const HereDocument& document : std::exchange(here_documents_, {})) read_here_document(document);
    line_start_ = at_;
  }

  void end_command() {
    // An empty command is kept if a here-document refers to it by its index.
    const bool has_here_document =
        !here_documents_.empty() && here_documents_.back().command == result_.commands.size();
    if (!command_.words.empty() || !command_.assignments.empty() || !command_.outputs.empty() ||
        has_here_document) {
      command_.runs_once = command_.runs_once && opened_.empty() && !may_be_left_out_;
      command_.in_function = functions_ > 0;
      result_.commands.push_back(std::move(command_));
      may_be_left_out_ = false;
    }
    command_ = {};
  }

  void begin_command() {
    if (command_.line == 0) command_.line = line_;
  }

  void read_comment() {
    const std::size_t end = std::min(text_.find('\n', at_), text_.size());
    const std::string_view before = text_.substr(line_start_, at_ - line_start_);
    // After a continued line the shell accepts a comment too, but sbatch does not read it as a line of its own.
    if (before.find_first_not_of(" \t") == kNone && command_.line == 0)
      result_.comments.push_back({line_, !before.empty(), std::string(text_.substr(at_, end - at_))});
    const bool follows_continued =
        continued_at_ > 0 &&
        text_.substr(continued_at_, at_ - continued_at_).find_first_not_of(" \t") == kNone;
    if (follows_continued && command_.line != 0 && begins_option(end))
      result_.broken_continuations.push_back({line_, /*by_comment=*/true});
    continued_at_ = 0;
    at_ = end;
  }

  /// Whether the line behind a line end, and behind further comments, begins with a hyphen.
  bool begins_option(std::size_t line_end) const {
    while (line_end < text_.size()) {
      const std::size_t start = text_.find_first_not_of(" \t", line_end + 1);
      if (start == kNone || text_[start] != '#') return start != kNone && text_[start] == '-';
      line_end = text_.find('\n', start);
    }
    return false;
  }

  /// For a backslash at at_, outside of quotes.
  void check_continuation() {
    const std::size_t next = std::min(text_.find_first_not_of(" \t", at_ + 1), text_.size());
    const bool has_blank = next > at_ + 1;
    if (!has_blank || next == text_.size()) return;
    if (text_[next] == '\n' || text_[next] == '\r' || text_[next] == '#')
      result_.broken_continuations.push_back({line_});
  }

  /// Skips arithmetic: ((i << 2)) has no redirection.
  void skip_arithmetic() {
    const std::size_t line_end = std::min(text_.find('\n', at_), text_.size());
    const std::size_t end = text_.substr(0, line_end).find("))", at_);
    at_ = end != kNone ? end + 2 : line_end;
  }

  void read_redirection() {
    begin_command();
    if (is_at("<(") || is_at(">(")) {  // a process, whose name is a word
      std::string text;
      const std::size_t start = at_++;
      take_parentheses();
      text = text_.substr(start, at_ - start);
      add_word({{std::move(text), true, {}}, kNone}, line_);
      return;
    }
    if (is_at("<<") && !is_at("<<<")) {
      at_ += 2;
      HereDocument document;
      document.strips_tabs = peek() == '-';
      if (document.strips_tabs) ++at_;
      skip_blanks();
      Word end = read_word();
      document.command = result_.commands.size();
      document.end = std::move(end.word.text);
      document.literal = end.word.quoted;
      here_documents_.push_back(std::move(document));
      return;
    }
    const bool writes = peek() == '>';
    while (peek() == '<' || peek() == '>' || peek() == '|') ++at_;
    const bool to_descriptor = peek() == '&';
    if (to_descriptor) ++at_;
    skip_blanks();
    Word target = read_word();
    if (writes && !to_descriptor && !target.word.text.empty())
      command_.outputs.push_back(std::move(target.word.text));
  }

  void skip_blanks() {
    while (peek() == ' ' || peek() == '\t') ++at_;
  }

  void read_here_document(const HereDocument& document) {
    ShellCommand& command = result_.commands[document.command];
    command.here_document.clear();
    command.here_document_line = line_;
    while (at_ < text_.size()) {
      const std::size_t end = std::min(text_.find('\n', at_), text_.size());
      std::string_view line = text_.substr(at_, end - at_);
      at_ = std::min(end + 1, text_.size());
      ++line_;
      if (document.strips_tabs) line.remove_prefix(std::min(line.find_first_not_of('\t'), line.size()));
      if (line.ends_with('\r')) line.remove_suffix(1);
      if (line == document.end) return;
      for (std::size_t i = 0; i < line.size(); ++i) {
        const bool escapes = !document.literal && line[i] == '\\' && i + 1 < line.size() &&
                             (line[i + 1] == '$' || line[i + 1] == '\\' || line[i + 1] == '`');
        if (escapes) ++i;
        if (!escapes && !document.literal && line[i] == '$') {
          const std::string_view name = expanded_name(line.substr(i + 1));
          if (!name.empty()) command.here_expansions.push_back({std::string(name), line_ - 1});
          for (std::string& plain : plain_names(arithmetic(line.substr(i + 1))))
            command.here_expansions.push_back({std::move(plain), line_ - 1, /*is_arithmetic=*/true});
        }
        command.here_document += line[i];
      }
      command.here_document += '\n';
    }
  }

  void add_word(Word read, int line) {
    std::string& text = read.word.text;
    const bool descriptor = !read.word.quoted && (peek() == '<' || peek() == '>') && is_number(text);
    if (descriptor) return;
    if (command_.words.empty()) {
      if (!read.word.quoted && command_.assignments.empty()) open_or_close(text);
      function_begins_ = false;
      const bool keyword = !read.word.quoted && command_.assignments.empty() &&
                           std::find(kKeywords.begin(), kKeywords.end(), text) != kKeywords.end();
      if (keyword) return;
      if (read.equals != kNone) {
        if (auto assignment = assignment_in(read.word, line)) {
          command_.assignments.push_back(*std::move(assignment));
          return;
        }
      }
    }
    const bool is_body = text == "{" && !read.word.quoted && command_.is_named("function");
    command_.words.push_back(std::move(read.word));
    if (!is_body) return;
    end_command();
    function_begins_ = true;
    open('{');
  }

  Word read_word() {
    Word word;
    std::string& text = word.word.text;
    while (at_ < text_.size()) {
      const char c = peek();
      const bool array = c == '(' && word.equals != kNone && word.equals + 1 == text.size();
      if (ends_word(c) && !array) break;
      const std::size_t start = at_;
      if (array) {
        take_parentheses();
        text += text_.substr(start, at_ - start);
      } else if (c == '\\') {
        check_continuation();
        ++at_;
        if (peek() == '\n') {
          ++at_;
          ++line_;
        } else if (at_ < text_.size()) {
          text += text_[at_++];
          word.word.quoted = true;
        }
      } else if (c == '\'' || is_at("$'")) {
        at_ += c == '$' ? 2 : 1;
        word.word.quoted = true;
        take_single_quotes(text);
      } else if (c == '"') {
        ++at_;
        word.word.quoted = true;
        take_double_quotes(word.word);
      } else if (is_at("$(")) {
        add_expansion(word.word, at_ + 1);
        ++at_;
        take_parentheses();
        text += text_.substr(start, at_ - start);
      } else if (is_at("${") || c == '`') {
        if (c == '$') add_expansion(word.word, at_ + 1);
        at_ += c == '`' ? 1 : 2;
        take_until(c == '`' ? '`' : '}');
        text += text_.substr(start, at_ - start);
      } else {
        if (c == '$') add_expansion(word.word, at_ + 1);
        if (c == '=' && word.equals == kNone && !word.word.quoted) word.equals = text.size();
        text += c;
        ++at_;
      }
    }
    return word;
  }

  /// Moves at_ to end, and counts the lines in between.
  void move_to(std::size_t end) {
    line_ += std::count(text_.begin() + at_, text_.begin() + end, '\n');
    at_ = end;
  }
  /// Where the search for a closing quote or parenthesis ends. A search that has failed once is not repeated over the
  /// whole text.
  bool is_beyond(std::size_t i) const { return i >= text_.size() || (!across_lines_ && text_[i] == '\n'); }
  void take_rest_of_line() {
    across_lines_ = false;
    at_ = std::min(text_.find('\n', at_), text_.size());
  }

  void take_until(char end) {
    std::size_t i = at_;
    while (!is_beyond(i) && text_[i] != end) ++i;
    if (is_beyond(i)) return take_rest_of_line();
    move_to(i + 1);
  }

  void take_single_quotes(std::string& text) {
    const std::size_t start = at_;
    take_until('\'');
    text += text_.substr(start, at_ - start);
    if (text.ends_with('\'')) text.pop_back();
  }

  void add_expansion(ShellWord& word, std::size_t behind) const {
    const std::string_view rest = text_.substr(std::min(behind, text_.size()));
    const std::string_view name = expanded_name(rest);
    if (!name.empty()) word.expands.emplace_back(name);
    for (std::string& plain : plain_names(arithmetic(rest))) word.expands.push_back(std::move(plain));
  }

  void take_double_quotes(ShellWord& word) {
    std::string& text = word.text;
    std::size_t end = end_of_double_quotes(at_, nests_);
    if (end == kNone && nests_) {
      nests_ = false;
      end = end_of_double_quotes(at_, false);
    }
    const std::size_t start = at_;
    if (end == kNone) {
      take_rest_of_line();
      end = at_;
    } else {
      move_to(end + 1);
    }
    for (std::size_t i = start; i < end; ++i) {
      if (text_[i] == '\\' && i + 1 < end) {
        const char next = text_[i + 1];
        if (next == '"' || next == '\\' || next == '$' || next == '`') ++i;
      } else if (text_[i] == '$') {
        add_expansion(word, i + 1);
      }
      text += text_[i];
    }
  }

  /// nests: a quote inside $(...) belongs to the command there.
  std::size_t end_of_double_quotes(std::size_t i, bool nests) const {
    int depth = 0;
    for (; !is_beyond(i); ++i) {
      const char c = text_[i];
      if (c == '\\') {
        ++i;
      } else if (nests && c == '$' && i + 1 < text_.size() && text_[i + 1] == '(') {
        ++depth;
        ++i;
      } else if (depth > 0 && c == '(') {
        ++depth;
      } else if (depth > 0 && c == ')') {
        --depth;
      } else if (depth == 0 && c == '"') {
        return i;
      }
    }
    return kNone;
  }

  /// at_ is at the first parenthesis.
  void take_parentheses() {
    int depth = 0;
    char quote = '\0';
    for (std::size_t i = at_; !is_beyond(i); ++i) {
      const char c = text_[i];
      if (c == '\\' && quote != '\'') {
        ++i;
      } else if (quote != '\0') {
        if (c == quote) quote = '\0';
      } else if (c == '\'' || c == '"') {
        quote = c;
      } else if (c == '(') {
        ++depth;
      } else if (c == ')' && --depth == 0) {
        return move_to(i + 1);
      }
    }
    take_rest_of_line();
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t line_start_ = 0;
  std::size_t continued_at_ = 0;  ///< behind the last backslash that continues a line; 0: there was none
  int line_;
  bool across_lines_ = true;
  bool nests_ = true;
  std::vector<Opened> opened_;
  int functions_ = 0;             ///< of opened_
  std::size_t parenthesis_ = 0;   ///< behind the last one
  bool function_begins_ = false;  ///< behind the () of "name()"
  bool may_be_left_out_ = false;  ///< the next command: behind && and the like
  ShellCommand command_;
  std::vector<HereDocument> here_documents_;  ///< whose bodies begin with the next line
  ShellText result_;
};

}  // namespace

std::string_view file_name_of(std::string_view path) { return path.substr(path.rfind('/') + 1); }

bool is_shell(std::string_view program) {
  constexpr std::array<std::string_view, 5> kShells = {"sh", "bash", "zsh", "ksh", "dash"};
  return std::find(kShells.begin(), kShells.end(), file_name_of(program)) != kShells.end();
}

std::optional<ShellAssignment> assignment_in(const ShellWord& word, int line) {
  const std::size_t equals = word.text.find('=');
  if (equals == kNone) return std::nullopt;
  std::string_view name = std::string_view(word.text).substr(0, equals);
  const bool appends = name.ends_with('+');
  if (appends) name.remove_suffix(1);
  if (!is_variable_name(name)) return std::nullopt;
  return ShellAssignment{std::string(name), word.text.substr(equals + 1), line, appends, word.expands};
}

ShellText read_shell(std::string_view text, int first_line) { return Reader(text, first_line).read(); }

}  // namespace ddl::templates
