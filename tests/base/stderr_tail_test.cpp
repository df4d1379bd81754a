#include "base/printable_text.h"

#include <algorithm>
#include <random>

#include "support/catch.h"

using ddl::printable_line;
using ddl::StderrTail;

namespace {

using Lines = std::vector<std::string>;

std::string numbered_lines(int first, int last) {
  std::string text;
  for (int i = first; i <= last; ++i) text += "line " + std::to_string(i) + "\n";
  return text;
}

Lines tail_of(std::string_view text) {
  StderrTail tail;
  tail.append(text);
  return tail.lines();
}

}  // namespace

TEST_CASE("a few lines are all kept, including an unfinished last one") {
  CHECK(tail_of("").empty());
  CHECK(tail_of("one\n\ntwo\nthree") == Lines{"one", "", "two", "three"});
}

TEST_CASE("only the last 20 lines are kept, for any division into reads") {
  StderrTail at_once;
  at_once.append(numbered_lines(1, 1000));
  REQUIRE(at_once.lines().size() == 20);
  CHECK(at_once.lines().front() == "line 981");
  CHECK(at_once.lines().back() == "line 1000");
  at_once.append("unfinished");
  REQUIRE(at_once.lines().size() == 20);
  CHECK(at_once.lines().front() == "line 982");
  CHECK(at_once.lines().back() == "unfinished");

  StderrTail by_line;
  for (int i = 1; i <= 1000; ++i) by_line.append(numbered_lines(i, i));
  by_line.append("unfinished");
  CHECK(by_line.lines() == at_once.lines());
}

TEST_CASE("many lines after an unfinished line drop that line completely") {
  StderrTail tail;
  tail.append("begun");
  tail.append(" and ended\n" + numbered_lines(1, 20));
  CHECK(tail.lines().front() == "line 1");
  CHECK(tail.lines().size() == 20);
}

TEST_CASE("a line that is overwritten after a carriage return is kept in its last form") {
  CHECK(tail_of("10%\r20%\r100%\ndone\n") == Lines{"100%", "done"});
  CHECK(tail_of("\r10%\r20%") == Lines{"20%"});
  CHECK(tail_of("20%\r") == Lines{"20%"});
  CHECK(tail_of("windows\r\nlines\r\n") == Lines{"windows", "lines"});
  StderrTail split;
  for (const std::string_view read : {"10%", "\r", "20%", "\r", "\n"}) split.append(read);
  CHECK(split.lines() == Lines{"20%"});
}

TEST_CASE("a long line is cut between characters and marked") {
  CHECK(tail_of(std::string(1024, 'x')) == Lines{std::string(1024, 'x')});
  CHECK(tail_of(std::string(1025, 'x') + "\nnext") == Lines{std::string(1024, 'x') + "...", "next"});
  CHECK(tail_of(std::string(1023, 'x') + "\xe2\x82\xac\n") == Lines{std::string(1023, 'x') + "..."});
  CHECK(tail_of(std::string(5000, 'x') + "\rshort\n") == Lines{"short"});
  StderrTail pieces;
  for (int i = 0; i < 1000; ++i) pieces.append("0123456789");
  CHECK(pieces.lines().at(0).size() == 1027);
}

TEST_CASE("a printable line contains no control sequence") {
  CHECK(printable_line("tab\tand text") == "tab\tand text");
  CHECK(printable_line("gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80") ==
        "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80");
  CHECK(printable_line("\x1b[1;31mError\x1b[0m: no") == "Error: no");
  CHECK(printable_line("\x1b]0;title\x07text") == "text");
  CHECK(printable_line("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\") == "link");
  CHECK(printable_line("\x1bPsixel data\x1b\\after") == "after");
  CHECK(printable_line("\x1b(Btext\x1b"
                       "7 \x1b"
                       "c") == "text ");
  CHECK(printable_line("unfinished \x1b[31") == "unfinished ");
  CHECK(printable_line("unfinished \x1b") == "unfinished ");
  CHECK(printable_line("\x1b\xe2\x82\xac") == "\xe2\x82\xac");
  CHECK(printable_line("doorbell\a back\b") == "doorbell^G back^H");
  CHECK(printable_line(std::string("nul\0 del\x7f", 9)) == "nul^@ del^?");
  CHECK(printable_line("\xc2\x9b"
                       "31m") == "<U+009B>31m");
  CHECK(printable_line("\xff\xc3(") == "\\xFF\\xC3(");
}

TEST_CASE("for random output the tail is bounded, printable, and independent of the reads") {
  std::mt19937 random(7);
  const std::vector<std::string> words = {
      "a",         "text ",    "\n",   "\r", "\r\n",     "\x1b[2J", "\x1b",
      "\xff",      "\xe2\x82", "\xac", "\a", "\xc2\x9b", "]0;",     std::string(600, 'x'),
      "\n\n\n\n\n"};
  for (int round = 0; round < 1000; ++round) {
    std::string text;
    for (std::size_t n = random() % 120; n > 0; --n) text += words[random() % words.size()];
    StderrTail in_reads;
    std::string_view rest = text;
    while (!rest.empty()) {
      const std::size_t size = 1 + random() % rest.size();
      in_reads.append(rest.substr(0, size));
      rest.remove_prefix(size);
    }
    const Lines lines = in_reads.lines();
    CHECK(lines == tail_of(text));
    CHECK(lines.size() <= StderrTail::kMaxLines);
    for (const std::string& line : lines) {
      CHECK(line.size() <= 8 * StderrTail::kMaxLineBytes + 3);
      CHECK(std::all_of(line.begin(), line.end(),
                        [](char c) { return static_cast<unsigned char>(c) >= 0x20 && c != 0x7f; }));
    }
  }
}
