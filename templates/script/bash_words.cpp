#include "templates/script/bash_words.h"

#include "base/text.h"

namespace ddl::templates {

std::string bash_quote(std::string_view word) {
  std::string quoted;
  for (const char c : shell_quote(word)) quoted += c == '\n' ? "'$'\\n''" : std::string(1, c);
  return quoted;
}

std::string bash_expanded(std::string_view word) {
  if (word.find('$') == std::string_view::npos) return bash_quote(word);
  std::string quoted = "\"";
  for (std::size_t i = 0; i < word.size(); ++i) {
    const char c = word[i];
    const bool is_escape = c == '\\' && i + 1 < word.size() && word[i + 1] == '$';
    if (is_escape) {
      quoted += "\\$";
      ++i;
    } else if (c == '\n') {
      quoted += "\"$'\\n'\"";
    } else {
      if (c == '\\' || c == '"' || c == '`') quoted += '\\';
      quoted += c;
    }
  }
  return quoted + "\"";
}

std::string bash_words(const std::vector<std::string>& words, bool expands) {
  std::vector<std::string> all;
  for (const std::string& word : words) all.push_back(expands ? bash_expanded(word) : bash_quote(word));
  return join(all, " ");
}

}  // namespace ddl::templates
