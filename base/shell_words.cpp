#include "base/shell_words.h"

#include "base/text.h"

namespace ddl {

Result<std::vector<std::string>> split_shell_words(std::string_view text) {
  std::vector<std::string> words;
  bool in_word = false;  // also an empty one: ''
  char quote = '\0';
  const auto add = [&](char c) {
    if (!in_word) words.emplace_back();
    in_word = true;
    words.back() += c;
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote == '\'') {
      if (c == quote) {
        quote = '\0';
      } else {
        add(c);
      }
    } else if (c == '\\') {
      if (++i == text.size()) return fail(ErrorCode::kInvalidArgument, "a backslash ends it");
      // In double quotes a backslash is itself before most characters.
      constexpr std::string_view kEscapable = "$`\"\\";
      if (quote == '"' && kEscapable.find(text[i]) == std::string_view::npos) add(c);
      add(text[i]);
    } else if (c == quote) {
      quote = '\0';
    } else if (quote == '\0' && (c == '\'' || c == '"')) {
      quote = c;
      if (!in_word) words.emplace_back();
      in_word = true;
    } else if (quote == '\0' && (c == ' ' || c == '\t' || c == '\n')) {
      in_word = false;
    } else {
      add(c);
    }
  }
  if (quote != '\0')
    return fail(ErrorCode::kInvalidArgument, std::string("a quote ") + quote + " is not closed");
  return words;
}

std::string shell_line(const std::vector<std::string>& words) {
  std::vector<std::string> quoted;
  for (const std::string& word : words) quoted.push_back(shell_quote(word));
  return join(quoted, " ");
}

}  // namespace ddl
