#include "launcher/output/line_formatter.h"

#include "launcher_output/fakes.h"
#include "support/catch.h"

using ddl::launcher::ChunkEnd;
using ddl::launcher::LineFormatter;
using ddl::launcher::LineStyle;
using ddl::launcher::OutputStream;
using namespace ddl::test;

namespace {

/// Formats what ranks 0 and 1 (streams 0 and 1) and ddlrun itself (stream 2) write to one sink.
class Page {
 public:
  explicit Page(LineStyle style) : formatter_(style, &tags_) {}
  Page& write(int stream, ChunkEnd end, std::string_view bytes) {
    const auto owner = formatter_.owner();
    REQUIRE((!owner || *owner == stream));
    const auto chunk = ddl::test::chunk(stream, OutputStream::kStdout, end, bytes, 1'500'000'000);
    CHECK(formatter_.format(stream, chunk, 0, SIZE_MAX, text_) == bytes.size());
    return *this;
  }
  const std::string& text() const { return text_; }
  LineFormatter& formatter() { return formatter_; }

 private:
  const std::vector<std::string> tags_ = {"[0]:", "[1]:", ""};
  LineFormatter formatter_;
  std::string text_;
};

constexpr LineStyle kTagged{.tag = true};
constexpr LineStyle kTaggedTerminal{.tag = true, .is_terminal = true};
constexpr LineStyle kPlain{.tag = false};
constexpr LineStyle kPlainTerminal{.tag = false, .is_terminal = true};
constexpr LineStyle kRaw{.tag = false, .raw = true, .is_terminal = true};

}  // namespace

TEST_CASE("every line of a chunk is tagged") {
  CHECK(Page(kTagged).write(0, kLine, "a\n\nb\r\n").write(1, kLine, "c\n").text() ==
        "[0]:a\n[0]:\n[0]:b\r\n[1]:c\n");
  CHECK(Page(kPlain).write(0, kLine, "a\n\nb\n").write(1, kLine, "c\n").text() == "a\n\nb\nc\n");
}

TEST_CASE("time stamps stand before tags, and alone without them") {
  const std::string stamp = [] {
    ddl::launcher::TimeStampFormat format;
    return format.text(1'500'000'000);
  }();
  CHECK(Page({.tag = true, .timestamp = true}).write(0, kLine, "a\nb\n").text() ==
        stamp + " [0]:a\n" + stamp + " [0]:b\n");
  CHECK(Page({.tag = false, .timestamp = true}).write(0, kLine, "a\n").write(2, kLine, "ours\n").text() ==
        stamp + " a\nours\n");
}

TEST_CASE("a line in pieces is tagged once and owns the sink until it ends") {
  Page page(kTagged);
  page.write(0, kOpen, "a");
  CHECK(page.formatter().owner() == 0);
  page.write(0, kOpen, "b");
  CHECK(page.formatter().owner() == 0);
  page.write(0, kLine, "c\nd\n");
  CHECK_FALSE(page.formatter().owner());
  CHECK(page.write(1, kLine, "e\n").text() == "[0]:abc\n[0]:d\n[1]:e\n");
}

TEST_CASE("after a silent owner others begin a new line, and the owner too when it goes on") {
  Page page(kTagged);
  page.write(0, kOpen, "a");
  page.formatter().release();
  CHECK_FALSE(page.formatter().owner());
  CHECK(page.write(1, kLine, "b\n").write(0, kLine, "c\n").text() == "[0]:a\n[1]:b\n[0]:c\n");
  Page alone(kTagged);
  alone.write(0, kOpen, "a");
  alone.formatter().release();
  CHECK(alone.write(0, kLine, "c\n").text() == "[0]:ac\n");
}

TEST_CASE("a prompt goes on in its line, unless another's line came between") {
  CHECK(Page(kTaggedTerminal).write(0, kIdle, "name: ").write(0, kLine, "x\n").text() == "[0]:name: x\n");
  CHECK(
      Page(kTaggedTerminal).write(0, kIdle, "name: ").write(1, kLine, "y\n").write(0, kLine, "x\n").text() ==
      "[0]:name: \n[1]:y\n[0]:x\n");
  CHECK(Page(kPlainTerminal).write(0, kIdle, "name: ").write(2, kLine, "ours\n").text() == "name: \nours\n");
}

TEST_CASE("a progress bar with the return behind is tagged at every step") {
  CHECK(Page(kTaggedTerminal)
            .write(0, kReturn, "1%\r")
            .write(0, kReturn, "2%\r3%\r")
            .write(0, kLine, "4%\n")
            .text() == "[0]:1%\r[0]:2%\r[0]:3%\r[0]:4%\n");
  CHECK(Page(kPlainTerminal).write(0, kReturn, "1%\r").write(0, kLine, "4%\n").text() == "1%\r4%\n");
}

TEST_CASE("a progress bar with the return in front is tagged at every step") {
  // As LineSplitter cuts it when every step has been shown as idle.
  Page page(kTaggedTerminal);
  page.write(0, kReturn, "\r")
      .write(0, kIdle, "1%")
      .write(0, kReturn, "\r")
      .write(0, kIdle, "2%")
      .write(0, kLine, "\n");
  CHECK(page.text() == "[0]:\r[0]:1%\r[0]:2%\n");
}

TEST_CASE("another's line takes the place of a progress bar on a terminal, and follows it elsewhere") {
  CHECK(Page(kTaggedTerminal)
            .write(0, kReturn, "1%\r")
            .write(1, kLine, "x\n")
            .write(0, kReturn, "2%\r")
            .text() == "[0]:1%\r\r\x1b[K[1]:x\n[0]:2%\r");
  CHECK(Page(kTagged).write(0, kReturn, "1%\r").write(1, kLine, "x\n").write(0, kReturn, "2%\r").text() ==
        "[0]:1%\r\n[1]:x\n[0]:2%\r");
  CHECK(Page(kPlain).write(0, kReturn, "1%\r").write(1, kLine, "x\n").text() == "1%\r\nx\n");
}

TEST_CASE("an unfinished last line is ended with tags, and without only if something follows") {
  CHECK(Page(kTagged).write(0, kEof, "a").text() == "[0]:a\n");
  CHECK(Page(kTagged).write(0, kOpen, "a").write(0, kEof, "").write(1, kLine, "b\n").text() ==
        "[0]:a\n[1]:b\n");
  CHECK(Page(kTaggedTerminal).write(0, kReturn, "100%\r").write(0, kEof, "").write(1, kLine, "b\n").text() ==
        "[0]:100%\r\n[1]:b\n");
  CHECK(Page(kTagged).write(0, kLine, "a\n").write(0, kEof, "").text() == "[0]:a\n");
  CHECK(Page(kTagged).write(0, kIdle, "a").write(1, kLine, "b\n").write(0, kEof, "").text() ==
        "[0]:a\n[1]:b\n");
  CHECK(Page(kTagged).write(0, kIdle, "a").write(1, kIdle, "b").write(0, kEof, "").text() == "[0]:a\n[1]:b");
  CHECK(Page(kPlain).write(0, kEof, "a").text() == "a");
  CHECK(Page(kPlain).write(0, kEof, "a").write(1, kLine, "b\n").text() == "a\nb\n");
  CHECK(Page(kPlainTerminal).write(0, kReturn, "100%\r").write(0, kEof, "").write(1, kLine, "b\n").text() ==
        "100%\r\nb\n");
  CHECK(Page(kPlain).write(0, kOpen, "a").write(0, kEof, "").write(1, kEof, "b").text() == "a\nb");
  CHECK(Page(kTagged).write(0, kEof, "").text().empty());
}

TEST_CASE("raw bytes pass unchanged, and only ddlrun's own lines keep off them") {
  Page page(kRaw);
  page.write(0, kOpen, "a").write(1, kOpen, "b\r").write(0, kOpen, "c\nd").write(0, kEof, "");
  CHECK_FALSE(page.formatter().owner());
  CHECK(page.text() == "ab\rc\nd");
  CHECK(page.write(2, kLine, "ours\n").text() == "ab\rc\nd\nours\n");
  CHECK(Page({.tag = true, .timestamp = true, .raw = true}).write(0, kOpen, "a\nb").text() == "a\nb");
}

TEST_CASE("ddlrun's own lines have no tag") {
  CHECK(Page(kTagged).write(0, kReturn, "1%\r").write(2, kLine, "ours\n").text() == "[0]:1%\r\nours\n");
}

TEST_CASE("a chunk that grows by its tags is formatted in parts") {
  const std::vector<std::string> tags = {"[0]:"};
  LineFormatter formatter(kTagged, &tags);
  const auto chunk = ddl::test::chunk(0, OutputStream::kStdout, kEof, "a\nb\nc\nd");
  std::string first;
  CHECK(formatter.format(0, chunk, 0, 7, first) == 4);
  CHECK(first == "[0]:a\n[0]:b\n");
  std::string second;
  CHECK(formatter.format(0, chunk, 4, 100, second) == 7);
  CHECK(second == "[0]:c\n[0]:d\n");
}
