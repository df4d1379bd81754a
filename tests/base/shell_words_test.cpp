#include "base/shell_words.h"

#include "base/text.h"
#include "support/catch.h"

using ddl::split_shell_words;

namespace {

using Words = std::vector<std::string>;

}  // namespace

TEST_CASE("words are split as by a shell") {
  const auto words = [](std::string_view text) { return split_shell_words(text).value(); };
  CHECK(words("").empty());
  CHECK(words(" \t\n").empty());
  CHECK(words("-o A=b  -p\t22\n") == Words{"-o", "A=b", "-p", "22"});
  CHECK(words("'a b' \"c d\"") == Words{"a b", "c d"});
  CHECK(words("a'b c'd\"e f\"g") == Words{"ab cde fg"});
  CHECK(words("'' \"\"") == Words{"", ""});
  CHECK(words("a\\ b \\' \\\"") == Words{"a b", "'", "\""});
  CHECK(words("'a\\b' \"a\\b\" \"a\\\"b\" \"a\\\\b\"") == Words{"a\\b", "a\\b", "a\"b", "a\\b"});
  CHECK(words("'\"' \"'\"") == Words{"\"", "'"});
}

TEST_CASE("nothing else of a shell's is special") {
  const Words plain = {"$HOME", "~", "*", ";", "|", "&", "`id`", "#", "$(id)", "a=b", "!", "{1,2}"};
  CHECK(split_shell_words(ddl::join(plain, " ")) == plain);
}

TEST_CASE("words that were quoted are split back unchanged") {
  for (const Words& words :
       {Words{"a b", "", "'", "\"", "\\", "$x", "a\nb"}, Words{"-o", "ProxyCommand=ssh 'x y' %h"}}) {
    std::vector<std::string> quoted;
    for (const auto& word : words) quoted.push_back(ddl::shell_quote(word));
    CHECK(split_shell_words(ddl::join(quoted, " ")) == words);
  }
}

TEST_CASE("an open quote and a backslash at the end are refused") {
  CHECK(split_shell_words("a 'b").error().message() == "a quote ' is not closed");
  CHECK(split_shell_words("a \"b").error().message() == "a quote \" is not closed");
  CHECK(split_shell_words("a \"b\\\"").error().message() == "a quote \" is not closed");
  CHECK(split_shell_words("a\\").error().message() == "a backslash ends it");
  CHECK(split_shell_words("\"\\").error().message() == "a backslash ends it");
}
