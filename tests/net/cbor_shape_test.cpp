#include "net/cbor_shape.h"

#include "support/catch.h"

using ddl::net::CborNumbers;
using ddl::net::check_cbor_shape;
using ddl::net::kMaxCborDepth;

namespace {

template <std::size_t size>
std::string_view bytes(const char (&literal)[size]) {
  return std::string_view(literal, size - 1);  // with zeros in it
}

std::string shape_refusal(std::string_view cbor) {
  const auto status = check_cbor_shape(cbor, CborNumbers::kSeconds);
  if (status) return "accepted";
  CHECK(status.error().code() == ddl::ErrorCode::kProtocol);
  return status.error().message();
}

/// [[[...0...]]]
std::string nested(int depth) { return std::string(static_cast<std::size_t>(depth), '\x81') + '\0'; }

}  // namespace

// The encodings are from RFC 8949, appendix A.
TEST_CASE("whole items of every plain kind are accepted") {
  for (const std::string_view item : {bytes("\x00"),
                                      bytes("\x17"),
                                      bytes("\x18\x64"),
                                      bytes("\x19\x03\xe8"),
                                      bytes("\x1a\x00\x0f\x42\x40"),
                                      bytes("\x1b\xff\xff\xff\xff\xff\xff\xff\xff"),
                                      bytes("\x20"),
                                      bytes("\x3b\x7f\xff\xff\xff\xff\xff\xff\xff"),
                                      bytes("\xf9\x3c\x00"),
                                      bytes("\xfa\x47\xc3\x50\x00"),
                                      bytes("\xfb\x3f\xf1\x99\x99\x99\x99\x99\x9a"),
                                      bytes("\xf4"),
                                      bytes("\xf5"),
                                      bytes("\xf6"),
                                      bytes("\x40"),
                                      bytes("\x44\x01\x02\x03\x04"),
                                      bytes("\x60"),
                                      bytes("\x62\xc3\xbc"),
                                      bytes("\x61\xff"),
                                      bytes("\x80"),
                                      bytes("\x83\x01\x02\x03"),
                                      bytes("\x83\x01\x82\x02\x03\x82\x04\x05"),
                                      bytes("\xa0"),
                                      bytes("\xa2\x61"
                                            "a\x01\x61"
                                            "b\x82\x02\x03")}) {
    INFO(Catch::StringMaker<std::string>::convert(std::string(item)));
    CHECK(shape_refusal(item) == "accepted");
  }
}

TEST_CASE("an item cut at any position is refused, and so are bytes behind it") {
  const std::string_view whole = bytes(
      "\xa2\x61"
      "a\x19\x03\xe8\x61"
      "b\x82\x44\x01\x02\x03\x04\xfb\x3f\xf1\x99\x99\x99\x99\x99\x9a");
  REQUIRE(shape_refusal(whole) == "accepted");
  for (std::size_t size = 0; size < whole.size(); ++size) {
    CAPTURE(size);
    CHECK(shape_refusal(whole.substr(0, size)) == "it is cut short");
  }
  CHECK(shape_refusal(std::string(whole) + '\0') == "there is more behind its end");
}

TEST_CASE("a length beyond the existing bytes is refused before anything is allocated") {
  CHECK(shape_refusal(bytes("\x5b\xff\xff\xff\xff\xff\xff\xff\xff")) == "it is cut short");
  CHECK(shape_refusal(bytes("\x7a\x00\x00\x00\x02y")) == "it is cut short");
  CHECK(shape_refusal(bytes("\x9b\xff\xff\xff\xff\xff\xff\xff\xff\x00")) == "it is cut short");
  CHECK(shape_refusal(bytes("\xbb\x80\x00\x00\x00\x00\x00\x00\x00\x00")) ==
        "it is cut short");  // twice that overflows
}

TEST_CASE("nesting ends where a recursive reader is still safe") {
  CHECK(shape_refusal(nested(kMaxCborDepth)) == "accepted");
  CHECK(shape_refusal(nested(kMaxCborDepth + 1)) == "it is nested too deeply");
  CHECK(shape_refusal(nested(10'000'000)) == "it is nested too deeply");
}

TEST_CASE("forms that the encoder never writes are refused") {
  CHECK(shape_refusal(bytes("\x9f\xff")) == "an item of indefinite length");
  // NOLINTNEXTLINE(bugprone-string-constructor): a long one is meant
  CHECK(shape_refusal(std::string(10'000'000, '\x7f')) == "an item of indefinite length");
  CHECK(shape_refusal(bytes("\x1c")) == "an item of indefinite length");  // a reserved one
  CHECK(shape_refusal(bytes("\xff")) == "an item of indefinite length");
  CHECK(shape_refusal(bytes("\xc0\x60")) == "it has a tag");
}

TEST_CASE("numbers that no field can hold are refused") {
  CHECK(shape_refusal(bytes("\xf9\x7e\x00")) == "a number that is not finite");  // NaN
  CHECK(shape_refusal(bytes("\xf9\xfc\x00")) == "a number that is not finite");  // -infinity
  CHECK(shape_refusal(bytes("\xfa\x7f\x80\x00\x00")) == "a number that is not finite, or too large");
  CHECK(shape_refusal(bytes("\xfb\x7e\x37\xe4\x3c\x88\x00\x75\x9c")) ==
        "a number that is not finite, or too large");                                 // 1e300
  CHECK(shape_refusal(bytes("\xfb\x41\xcd\xcd\x65\x00\x00\x00\x00")) == "accepted");  // 1e9
}
