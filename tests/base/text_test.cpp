#include "base/text.h"

#include <clocale>
#include <csignal>
#include <limits>

#include "support/catch.h"

using Parts = std::vector<std::string_view>;

TEST_CASE("split keeps empty parts") {
  CHECK(ddl::split("a,b,,c,", ',') == Parts{"a", "b", "", "c", ""});
  CHECK(ddl::split("", ',') == Parts{""});
  CHECK(ddl::split("one", ',') == Parts{"one"});
}

TEST_CASE("join is the inverse of split") {
  CHECK(ddl::join({"a", "", "b"}, ", ") == "a, , b");
  CHECK(ddl::join({}, ",").empty());
  CHECK(ddl::join({"one"}, ",") == "one");
}

TEST_CASE("trim removes blanks at both ends only") {
  CHECK(ddl::trim(" \t a b \r\n") == "a b");
  CHECK(ddl::trim(" \n ").empty());
  CHECK(ddl::trim("").empty());
  CHECK(ddl::trim("x") == "x");
}

TEST_CASE("whole numbers") {
  CHECK(ddl::parse_integer("0") == 0);
  CHECK(ddl::parse_integer("-17") == -17);
  CHECK(ddl::parse_integer("+4") == 4);
  CHECK(ddl::parse_integer("007") == 7);
  CHECK(ddl::parse_integer("9223372036854775807") == std::numeric_limits<std::int64_t>::max());
  CHECK(ddl::parse_integer("-9223372036854775808") == std::numeric_limits<std::int64_t>::min());
}

TEST_CASE("text that is not a whole number") {
  const char* text = GENERATE("", "+", "-", "+-1", "--1", " 1", "1 ", "1x", "0x10", "1.0", "1e3",
                              "9223372036854775808", "-9223372036854775809", "\xd9\xa1");
  CAPTURE(text);
  CHECK_FALSE(ddl::parse_integer(text));
}

TEST_CASE("a number ends where the text ends, not at a terminator behind it") {
  const std::string_view text("1234", 2);
  CHECK(ddl::parse_integer(text) == 12);
  CHECK(ddl::parse_number(text) == 12.0);
  CHECK_FALSE(ddl::parse_integer(std::string_view("1\0", 2)));
}

TEST_CASE("decimal numbers") {
  CHECK(ddl::parse_number("0.5") == 0.5);
  CHECK(ddl::parse_number("-2") == -2.0);
  CHECK(ddl::parse_number("+1.25") == 1.25);
  CHECK(ddl::parse_number("1e-3") == 1e-3);
}

TEST_CASE("text that is not a finite decimal number") {
  const char* text = GENERATE("", ".", "+-1", " 1", "1,5", "1.5s", "inf", "-inf", "nan", "0x1p3", "1e999");
  CAPTURE(text);
  CHECK_FALSE(ddl::parse_number(text));
}

TEST_CASE("words as a shell needs them") {
  CHECK(ddl::shell_quote("train.py") == "train.py");
  CHECK(ddl::shell_quote("--lr=0.1") == "--lr=0.1");
  CHECK(ddl::shell_quote("") == "''");
  CHECK(ddl::shell_quote("two words") == "'two words'");
  CHECK(ddl::shell_quote("it's") == "'it'\\''s'");
  CHECK(ddl::shell_quote("$HOME") == "'$HOME'");
  CHECK(ddl::shell_quote("*") == "'*'");
  CHECK(ddl::shell_quote("~user") == "'~user'");
  CHECK(ddl::shell_quote("a\nb") == "'a\nb'");
  CHECK(ddl::shell_quote("\xc3\xa4") == "'\xc3\xa4'");
}

TEST_CASE("a time limit is shown as it was given, also one that went through a float") {
  CHECK(ddl::time_limit_text(0.3F) == "0.3 s");
  CHECK(ddl::time_limit_text(1200) == "1200 s");
}

TEST_CASE("one rank, two ranks") {
  CHECK(ddl::counted(1, "rank") == "1 rank");
  CHECK(ddl::counted(0, "rank") == "0 ranks");
  CHECK(ddl::counted(2, "rank") == "2 ranks");
  CHECK(ddl::counted(1, "process") == "1 process");
  CHECK(ddl::counted(6, "process") == "6 processes");
}

TEST_CASE("signals by name") {
  CHECK(ddl::signal_text(SIGSEGV) == "SIGSEGV (segmentation fault)");
  CHECK(ddl::signal_text(SIGBUS) == "SIGBUS (bus error)");
  // The name says it already.
  CHECK(ddl::signal_text(SIGKILL) == "SIGKILL");
  CHECK(ddl::signal_text(SIGTERM) == "SIGTERM");
  CHECK(ddl::signal_text(SIGSTOP) == "SIGSTOP");
  CHECK(ddl::signal_text(77) == "signal 77");
  CHECK(ddl::signal_text(-1) == "signal -1");
}

TEST_CASE("the edit distance counts inserted, removed, replaced and swapped characters") {
  CHECK(ddl::edit_distance("", "") == 0);
  CHECK(ddl::edit_distance("abc", "abc") == 0);
  CHECK(ddl::edit_distance("", "abc") == 3);
  CHECK(ddl::edit_distance("abc", "") == 3);
  CHECK(ddl::edit_distance("verbos", "verbose") == 1);
  CHECK(ddl::edit_distance("vrebose", "verbose") == 1);
  CHECK(ddl::edit_distance("work-dir", "workdir") == 1);
  CHECK(ddl::edit_distance("kitten", "sitting") == 3);
}

TEST_CASE("the nearest word is the one that was probably meant") {
  const std::vector<std::string> words = {"frontier", "lumi-c", "lumi-g", "mpi"};
  CHECK(ddl::nearest_word("lumig", words) == "lumi-g");
  CHECK(ddl::nearest_word("LUMI_G", words) == "lumi-g");
  CHECK(ddl::nearest_word("fronteir", words) == "frontier");
  CHECK_FALSE(ddl::nearest_word("atlantis", words));
  CHECK_FALSE(ddl::nearest_word("", words));
  CHECK_FALSE(ddl::nearest_word(std::string(100'000, 'v'), words));
  CHECK_FALSE(ddl::nearest_word("x", {}));
}

TEST_CASE("text for XML has no markup and no control characters") {
  CHECK(ddl::xml_escape("a <b> & \"c\"\n\x1b[0m") == "a &lt;b&gt; &amp; &quot;c&quot;  [0m");
  CHECK(ddl::xml_escape("\xc3\xa4 \xff") == "\xc3\xa4 \xff");
}
