#include "base/bytes.h"

#include <array>

#include "support/catch.h"

TEST_CASE("bytes become hexadecimal digits and back") {
  const std::array bytes{std::byte{0}, std::byte{0x1f}, std::byte{0xa0}, std::byte{0xff}};
  CHECK(ddl::to_hex(bytes) == "001fa0ff");
  CHECK(ddl::to_hex({}) == "");
  std::array<std::byte, 4> back{};
  REQUIRE(ddl::from_hex("001fa0ff", back));
  CHECK(back == bytes);
  CHECK(ddl::from_hex("", {}));
  for (const char* text : {"", "001fa0f", "001fa0ff0", "001FA0FF", "001fa0fg", " 01fa0ff", "0x1fa0ff"}) {
    CAPTURE(text);
    CHECK_FALSE(ddl::from_hex(text, back));
  }
}

TEST_CASE("the text of a UUID has its digits in five groups") {
  std::array<std::byte, 16> bytes{};
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(16 * i + 15 - i);
  CHECK(ddl::uuid_text(bytes) == "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0");
}

TEST_CASE("random bytes differ from one another") {
  std::array<std::byte, 32> one{}, other{};
  REQUIRE(ddl::fill_random(one));
  REQUIRE(ddl::fill_random(other));
  CHECK(one != other);
  const auto text = ddl::random_hex(one.size());
  REQUIRE(text);
  CHECK(ddl::from_hex(*text, one));
  CHECK(*text != ddl::random_hex(one.size()).value());
}
