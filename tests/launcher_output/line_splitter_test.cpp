#include "launcher/output/output_stream.h"

#include <ostream>
#include <random>

#include "base/printable_text.h"
#include "launcher_output/fakes.h"
#include "support/catch.h"

using ddl::launcher::ChunkEnd;
using ddl::launcher::LineSplitter;
using ddl::launcher::OutputChunk;
using ddl::launcher::OutputStream;
using namespace ddl::test;

namespace {

struct Piece {
  std::string bytes;
  ChunkEnd end;
  std::int64_t time_ns = 0;
  friend bool operator==(const Piece&, const Piece&) = default;
  friend std::ostream& operator<<(std::ostream& out, const Piece& piece) {
    return out << Catch::StringMaker<std::string>::convert(piece.bytes) << " end "
               << static_cast<int>(piece.end) << " at " << piece.time_ns;
  }
};

/// A splitter whose n-th read (from 1) is at time n.
class Reads {
 public:
  explicit Reads(LineSplitter::Mode mode = LineSplitter::Mode::kLines,
                 std::size_t max_line = LineSplitter::kMaxLine)
      : splitter_(3, OutputStream::kStderr, mode, max_line) {}

  std::vector<Piece> read(std::string_view bytes) {
    splitter_.append(bytes, ++time_, chunks_);
    return taken();
  }
  std::vector<Piece> idle() {
    splitter_.flush_idle(chunks_);
    return taken();
  }
  std::vector<Piece> finish() {
    splitter_.finish(++time_, chunks_);
    return taken();
  }
  const LineSplitter& splitter() const { return splitter_; }

 private:
  std::vector<Piece> taken() {
    std::vector<Piece> pieces;
    for (OutputChunk& chunk : chunks_) {
      CHECK(chunk.rank == 3);
      CHECK(chunk.stream == OutputStream::kStderr);
      pieces.push_back({std::move(chunk.bytes), chunk.end, chunk.time_ns});
    }
    chunks_.clear();
    return pieces;
  }
  LineSplitter splitter_;
  std::vector<OutputChunk> chunks_;
  std::int64_t time_ = 0;
};

using Pieces = std::vector<Piece>;

}  // namespace

TEST_CASE("complete lines of one read become one chunk") {
  Reads reads;
  CHECK(reads.read("one\ntwo\n\nthree\n") == Pieces{{"one\ntwo\n\nthree\n", kLine, 1}});
  CHECK(reads.splitter().held_bytes() == 0);
}

TEST_CASE("the start of a line is held until its end and keeps its time") {
  Reads reads;
  CHECK(reads.read("one\ntw").size() == 1);
  CHECK(reads.read("").empty());
  CHECK(reads.read("o").empty());
  CHECK(reads.splitter().held_bytes() == 3);
  CHECK(reads.read("\nthree\nfour\nfi") == Pieces{{"two\n", kLine, 1}, {"three\nfour\n", kLine, 4}});
  CHECK(reads.finish() == Pieces{{"fi", kEof, 4}});
}

TEST_CASE("the end of a stream is one chunk, with the held bytes or empty") {
  Reads whole;
  whole.read("one\n");
  CHECK(whole.finish() == Pieces{{"", kEof, 2}});
  Reads without_newline;
  without_newline.read("one");
  CHECK(without_newline.finish() == Pieces{{"one", kEof, 1}});
  Reads cut_character;
  cut_character.read("\xe2\x82");
  CHECK(cut_character.finish() == Pieces{{"\xe2\x82", kEof, 1}});
  CHECK(Reads().finish() == Pieces{{"", kEof, 1}});
}

TEST_CASE("a progress bar that ends with a carriage return is forwarded at the next step or when idle") {
  Reads reads;
  CHECK(reads.read("10%\r").empty());
  CHECK(reads.read("20%\r") == Pieces{{"10%\r", kReturn, 1}});
  CHECK(reads.splitter().can_flush());
  CHECK(reads.idle() == Pieces{{"20%\r", kReturn, 2}});
  CHECK_FALSE(reads.splitter().can_flush());
  CHECK(reads.read("30%\rdone\n") == Pieces{{"30%\rdone\n", kLine, 3}});
}

TEST_CASE("a progress bar that begins with a carriage return is forwarded when idle or at the next step") {
  Reads reads;
  CHECK(reads.read("\r10%") == Pieces{{"\r", kReturn, 1}});
  CHECK(reads.read("\r20%") == Pieces{{"10%\r", kReturn, 1}});
  CHECK(reads.idle() == Pieces{{"20%", kIdle, 2}});
  CHECK(reads.read("\r30%") == Pieces{{"\r", kReturn, 3}});
  CHECK(reads.read("\n") == Pieces{{"30%\n", kLine, 3}});
}

TEST_CASE("many steps of a progress bar in one read are one chunk") {
  Reads reads;
  CHECK(reads.read("x\ny\n10%\r20%\r30") == Pieces{{"x\ny\n10%\r20%\r", kReturn, 1}});
  CHECK(reads.finish() == Pieces{{"30", kEof, 1}});
}

TEST_CASE("\\r\\n is one line end, also when two reads share it") {
  Reads reads;
  CHECK(reads.read("one\r\ntwo\r\n") == Pieces{{"one\r\ntwo\r\n", kLine, 1}});
  CHECK(reads.read("three\r").empty());
  CHECK(reads.read("\nfour\n") == Pieces{{"three\r\n", kLine, 2}, {"four\n", kLine, 3}});
  CHECK(reads.read("five").empty());
  CHECK(reads.read("\r").empty());
  CHECK(reads.read("\n") == Pieces{{"five\r\n", kLine, 4}});
  CHECK(reads.read("six\r\r").size() == 1);  // no "\n" follows the first "\r"
  CHECK(reads.read("\n") == Pieces{{"\r\n", kLine, 7}});
  CHECK(reads.read("seven\r").empty());
  CHECK(reads.finish() == Pieces{{"seven\r", kEof, 9}});
}

TEST_CASE("a prompt is forwarded when idle, and the rest of its line is a separate chunk") {
  Reads reads;
  CHECK(reads.read("old\nname: ") == Pieces{{"old\n", kLine, 1}});
  CHECK(reads.idle() == Pieces{{"name: ", kIdle, 1}});
  CHECK(reads.idle().empty());
  CHECK(reads.read("hello").empty());
  CHECK(reads.read("!\n") == Pieces{{"hello!\n", kLine, 2}});
  CHECK(reads.finish() == Pieces{{"", kEof, 4}});
}

TEST_CASE("a line beyond the limit is forwarded in pieces as they are read") {
  Reads reads(LineSplitter::Mode::kLines, 8);
  CHECK(reads.read("1234567").empty());
  CHECK(reads.read("8") == Pieces{{"12345678", kOpen, 1}});
  CHECK(reads.read("9") == Pieces{{"9", kOpen, 3}});
  CHECK(reads.read("0\nab") == Pieces{{"0\n", kLine, 4}});
  CHECK(reads.read("c\n") == Pieces{{"abc\n", kLine, 4}});
  CHECK(reads.read("a line in one read may be longer\n").size() == 1);
  CHECK(reads.read("1234567\r").size() == 1);
  CHECK(reads.read("\n") == Pieces{{"\r\n", kLine, 7}});  // not separated here, either
  CHECK(reads.read("123456789").size() == 1);
  CHECK(reads.finish() == Pieces{{"", kEof, 10}});
}

TEST_CASE("the default limit of a line is 64 KiB") {
  Reads reads;
  CHECK(reads.read(std::string(65535, 'x')).empty());
  CHECK(reads.splitter().held_bytes() == 65535);
  const auto pieces = reads.read("x");
  REQUIRE(pieces.size() == 1);
  CHECK(pieces[0].bytes == std::string(65536, 'x'));
  CHECK(reads.splitter().held_bytes() == 0);
}

TEST_CASE("kOpen and kIdle pieces end between characters, wherever the reads are cut") {
  const std::string character = "\xf0\x9f\x98\x80";
  for (std::size_t cut = 1; cut < character.size(); ++cut) {
    Reads open(LineSplitter::Mode::kLines, 4);
    CHECK(open.read("1234" + character.substr(0, cut)) == Pieces{{"1234", kOpen, 1}});
    CHECK(open.splitter().held_bytes() == cut);
    CHECK(open.read(character.substr(cut)) == Pieces{{character, kOpen, 1}});

    Reads idle;
    CHECK(idle.read("12" + character.substr(0, cut)).empty());
    CHECK(idle.idle() == Pieces{{"12", kIdle, 1}});
    CHECK_FALSE(idle.splitter().can_flush());
    CHECK(idle.idle().empty());
    CHECK(idle.read(character.substr(cut)).empty());
    CHECK(idle.idle() == Pieces{{character, kIdle, 1}});
  }
}

TEST_CASE("binary bytes beyond the limit are forwarded at once") {
  Reads reads(LineSplitter::Mode::kLines, 4);
  const std::string binary("\xff\x00\xfe\x80", 4);
  CHECK(reads.read(binary) == Pieces{{binary, kOpen, 1}});
  CHECK(reads.read("\x80") == Pieces{{"\x80", kOpen, 2}});
}

TEST_CASE("in raw mode reads are forwarded unchanged") {
  Reads reads(LineSplitter::Mode::kRaw);
  CHECK(reads.read("a\nb\r\xe2") == Pieces{{"a\nb\r\xe2", kOpen, 1}});
  CHECK(reads.read("\n") == Pieces{{"\n", kOpen, 2}});
  CHECK(reads.idle().empty());
  CHECK(reads.finish() == Pieces{{"", kEof, 3}});
}

TEST_CASE("bytes and the guarantees about chunks hold for random texts and reads") {
  std::mt19937 random(20240229);
  const std::vector<std::string> words = {"a",    "word ", "\n",   "\n",           "\r",
                                          "\r\n", "\xff",  "\x80", "\xe2\x82\xac", "\xf0\x9f\x98\x80"};
  for (int round = 0; round < 1000; ++round) {
    const std::size_t max_line = 1 + random() % 40;
    LineSplitter splitter(0, OutputStream::kStdout, LineSplitter::Mode::kLines, max_line);
    std::string text;
    for (std::size_t n = random() % 60; n > 0; --n) text += words[random() % words.size()];

    std::vector<OutputChunk> chunks;
    std::string_view rest = text;
    while (!rest.empty()) {
      const std::size_t size = 1 + random() % std::min<std::size_t>(rest.size(), 12);
      splitter.append(rest.substr(0, size), 0, chunks);
      rest.remove_prefix(size);
      CHECK(splitter.held_bytes() < std::max<std::size_t>(max_line, 4));
      if (random() % 5 == 0) splitter.flush_idle(chunks);
    }
    splitter.finish(0, chunks);

    std::string joined;
    for (const OutputChunk& chunk : chunks) {
      joined += chunk.bytes;
      const char last = chunk.bytes.empty() ? '\0' : chunk.bytes.back();
      INFO(Catch::StringMaker<std::string>::convert(text));
      switch (chunk.end) {
        case ChunkEnd::kLine: CHECK(last == '\n'); break;
        case ChunkEnd::kCarriageReturn: CHECK(last == '\r'); break;
        case ChunkEnd::kOpen:
        case ChunkEnd::kIdle:
          CHECK_FALSE(chunk.bytes.empty());
          CHECK(last != '\n');
          CHECK(last != '\r');
          CHECK(ddl::incomplete_utf8_tail(chunk.bytes) == 0);
          break;
        case ChunkEnd::kEof: CHECK(&chunk == &chunks.back()); break;
      }
    }
    CHECK(joined == text);
    CHECK(chunks.back().end == ChunkEnd::kEof);
  }
}
