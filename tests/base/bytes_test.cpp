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
