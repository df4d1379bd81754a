#include "templates/script/bash_words.h"

#include "base/text.h"

namespace ddl::templates {

std::string bash_quote(std::string_view word) {
  std::string quoted;
  for (const char c : shell_quote(word)) quoted += c == '\n' ? "'$'\\n''" : std::string(1, c);
  return quoted;
}

std::string bash_words(const std::vector<std::string>& words) {
  std::vector<std::string> all;
  for (const std::string& word : words) all.push_back(bash_quote(word));
  return join(all, " ");
}

}  // namespace ddl::templates
