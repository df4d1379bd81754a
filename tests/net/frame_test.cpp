#include "net/frame.h"

#include "support/catch.h"

using ddl::ErrorCode;
using ddl::net::append_frame;
using ddl::net::Frame;
using ddl::net::FrameDecoder;
using ddl::net::kFrameHeaderSize;

namespace {

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

bool same(const Frame& frame, std::uint16_t type, std::string_view payload) {
  return frame.type == type && frame.payload == payload;
}

/// All frames that are whole now. Fails the test on an error.
std::vector<Frame> drain(FrameDecoder& decoder) {
  std::vector<Frame> frames;
  for (;;) {
    auto next = decoder.next();
    REQUIRE(next);
    if (!*next) return frames;
    frames.push_back(std::move(**next));
  }
}

/// Three frames that differ in kind: with bytes of every sort, empty, and one that looks like a header.
std::string three_frames() {
  std::string stream;
  append_frame(stream, 1, std::string_view("\x00\xff\x17\xdd payload\n", 13));
  append_frame(stream, 0xffff, "");
  append_frame(stream, 0x0203, std::string_view("\x17\xdd\x01\x00\xff\xff\xff\x7f", 8));
  return stream;
}

void check_three(const std::vector<Frame>& frames) {
  REQUIRE(frames.size() == 3);
  CHECK(same(frames[0], 1, std::string_view("\x00\xff\x17\xdd payload\n", 13)));
  CHECK(same(frames[1], 0xffff, ""));
  CHECK(same(frames[2], 0x0203, std::string_view("\x17\xdd\x01\x00\xff\xff\xff\x7f", 8)));
}

}  // namespace

TEST_CASE("the bytes of a frame are magic, type and length, little-endian, then the payload") {
  std::string stream = "before";
  append_frame(stream, 0x0102, "abc");
  CHECK(stream == std::string("before\x17\xdd\x02\x01\x03\x00\x00\x00"
                              "abc",
                              17));
}

TEST_CASE("frames come back complete however the stream is cut in two") {
  const std::string stream = three_frames();
  for (std::size_t cut = 0; cut <= stream.size(); ++cut) {
    CAPTURE(cut);
    FrameDecoder decoder;
    decoder.append(bytes_of(std::string_view(stream).substr(0, cut)));
    std::vector<Frame> frames = drain(decoder);
    decoder.append(bytes_of(std::string_view(stream).substr(cut)));
    for (Frame& frame : drain(decoder)) frames.push_back(std::move(frame));
    check_three(frames);
    CHECK(decoder.at_boundary());
  }
}

TEST_CASE("frames come back from pieces of every size, taken at once or at the end") {
  const std::string stream = three_frames();
  const bool drain_each = GENERATE(true, false);
  for (std::size_t size = 1; size <= stream.size(); ++size) {
    CAPTURE(size, drain_each);
    FrameDecoder decoder;
    std::vector<Frame> frames;
    for (std::size_t at = 0; at < stream.size(); at += size) {
      decoder.append(bytes_of(std::string_view(stream).substr(at, size)));
      if (!drain_each) continue;
      for (Frame& frame : drain(decoder)) frames.push_back(std::move(frame));
    }
    for (Frame& frame : drain(decoder)) frames.push_back(std::move(frame));
    check_three(frames);
  }
}

TEST_CASE("a stream may end only between frames") {
  const std::string stream = three_frames();
  FrameDecoder decoder;
  CHECK(decoder.at_boundary());
  std::size_t boundaries = 0;
  for (std::size_t i = 0; i < stream.size(); ++i) {
    decoder.append(bytes_of(std::string_view(stream).substr(i, 1)));
    drain(decoder);
    if (decoder.at_boundary()) ++boundaries;
  }
  CHECK(boundaries == 3);
  CHECK(decoder.at_boundary());
}

TEST_CASE("a payload of exactly the cap is a frame, one byte more is an error before it arrives") {
  constexpr std::size_t kCap = 1000;
  std::string stream;
  append_frame(stream, 5, std::string(kCap, 'x'));
  FrameDecoder within(kCap);
  within.append(bytes_of(stream));
  const auto frame = within.next();
  REQUIRE((frame && *frame));
  CHECK((*frame)->payload.size() == kCap);

  FrameDecoder beyond(kCap - 1);
  beyond.append(bytes_of(std::string_view(stream).substr(0, kFrameHeaderSize)));
  const auto refused = beyond.next();
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code() == ErrorCode::kProtocol);
  CHECK_THAT(refused.error().message(), Catch::Contains("1000 bytes") && Catch::Contains("999"));
}

TEST_CASE("the largest claim that the header can hold is refused") {
  FrameDecoder decoder;
  decoder.append(bytes_of(std::string_view("\x17\xdd\x01\x00\xff\xff\xff\xff", 8)));
  const auto refused = decoder.next();
  REQUIRE_FALSE(refused);
  CHECK_THAT(refused.error().message(), Catch::Contains("4294967295 bytes"));
}

TEST_CASE("bytes that are not a frame are a permanent error, after the valid frames before them") {
  std::string stream;
  append_frame(stream, 1, "good");
  stream += "Permission denied";
  FrameDecoder decoder;
  decoder.append(bytes_of(stream));
  const auto good = decoder.next();
  REQUIRE((good && *good));
  CHECK(same(**good, 1, "good"));
  CHECK_FALSE(decoder.next());

  std::string more;
  append_frame(more, 2, "later");
  decoder.append(bytes_of(more));
  const auto still = decoder.next();
  REQUIRE_FALSE(still);
  CHECK(still.error().code() == ErrorCode::kProtocol);
}

TEST_CASE("a wrong second byte of the magic is noticed too") {
  FrameDecoder decoder;
  decoder.append(bytes_of(std::string_view("\x17\xde\x01\x00\x00\x00\x00\x00", 8)));
  CHECK_FALSE(decoder.next());
}

TEST_CASE("a decoder without bytes has no frame") {
  FrameDecoder decoder;
  decoder.append({});
  const auto next = decoder.next();
  REQUIRE(next);
  CHECK_FALSE(*next);
}
