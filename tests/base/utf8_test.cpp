#include "base/printable_text.h"

#include <string>

#include "support/catch.h"

using ddl::incomplete_utf8_tail;
using ddl::utf8_character_length;

namespace {
// One to four bytes: A, e acute, euro, an emoji; the first and last of each length, and the neighbours of surrogates.
const std::vector<std::string> kCharacters = {"A",
                                              std::string(1, '\0'),
                                              "\x7f",
                                              "\xc3\xa9",
                                              "\xc2\x80",
                                              "\xdf\xbf",
                                              "\xe2\x82\xac",
                                              "\xe0\xa0\x80",
                                              "\xed\x9f\xbf",
                                              "\xee\x80\x80",
                                              "\xef\xbf\xbf",
                                              "\xf0\x9f\x98\x80",
                                              "\xf0\x90\x80\x80",
                                              "\xf4\x8f\xbf\xbf"};
}  // namespace

TEST_CASE("a truncated character is an incomplete tail of its length") {
  for (const std::string& character : kCharacters) {
    for (std::size_t cut = 0; cut <= character.size(); ++cut) {
      const std::string text = "text" + character.substr(0, cut);
      CHECK(incomplete_utf8_tail(text) == (cut == character.size() ? 0 : cut));
      CHECK(incomplete_utf8_tail(text.substr(4)) == (cut == character.size() ? 0 : cut));
    }
  }
}

TEST_CASE("bytes that can no longer become UTF-8 are not an incomplete tail") {
  const std::vector<std::string> binary = {
      "\x80",              // a continuation byte without a lead byte
      "\x80\x80\x80\x80",  // and several
      "\xc0",              // overlong forms
      "\xc1",
      "\xe0\x80",
      "\xf0\x8f\xbf",
      "\xed\xa0",  // a surrogate
      "\xf4\x90",  // beyond U+10FFFF
      "\xf5",
      "\xff",
      "\xe2\x28",      // the lead byte of three, then "("
      "\xc3\xa9\xa9",  // a whole character, then a stray continuation byte
  };
  for (const std::string& text : binary) {
    INFO(Catch::StringMaker<std::string>::convert(text));
    CHECK(incomplete_utf8_tail(text) == 0);
    CHECK(incomplete_utf8_tail("text" + text) == 0);
  }
  CHECK(incomplete_utf8_tail("") == 0);
}

TEST_CASE("the length of a character is its number of bytes, and 0 if it is invalid or incomplete") {
  for (const std::string& character : kCharacters) {
    CHECK(utf8_character_length(character + "more") == character.size());
    for (std::size_t cut = 0; cut < character.size(); ++cut) {
      CHECK(utf8_character_length(character.substr(0, cut)) == 0);
    }
  }
  for (const std::string text :
       {"\x80", "\xc0\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xff", "\xe2\x82z"}) {
    CHECK(utf8_character_length(text) == 0);
  }
}
