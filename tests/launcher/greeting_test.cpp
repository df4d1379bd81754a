#include "launcher/protocol/link.h"

#include "support/catch.h"

using namespace ddl::launcher;
using State = GreetingScanner::State;

namespace {
constexpr char kNonce[] = "00112233445566778899aabbccddeeff";
}

TEST_CASE("a greeting is found behind a shell's noise, with what follows it") {
  GreetingScanner scanner(kNonce);
  CHECK(scanner.take("Welcome!\nddlrun-agent is a fine program\n") == State::kLooking);
  CHECK(scanner.take(greeting("0.1.0", kNonce) + "frames") == State::kFound);
  CHECK(scanner.version() == "0.1.0");
  CHECK(scanner.rest() == "frames");
  CHECK(scanner.noise() == "Welcome!\nddlrun-agent is a fine program\n");
}

TEST_CASE("a greeting that comes byte by byte is found at its last one") {
  GreetingScanner scanner(kNonce);
  const std::string text = "x" + greeting("12.3.4", kNonce);
  for (std::size_t i = 0; i + 1 < text.size(); ++i)
    REQUIRE(scanner.take(text.substr(i, 1)) == State::kLooking);
  CHECK(scanner.take("\n") == State::kFound);
  CHECK(scanner.version() == "12.3.4");
  CHECK(scanner.rest().empty());
}

TEST_CASE("another job's greeting is noise") {
  GreetingScanner scanner(kNonce);
  CHECK(scanner.take(greeting("0.1.0", std::string(32, 'f'))) == State::kLooking);
  CHECK(scanner.take(std::string("ddlrun-agent ") + std::string(100, '9') + " " + kNonce + "\n") ==
        State::kLooking);
}

TEST_CASE("the search for a greeting ends after 64 KiB of noise") {
  GreetingScanner scanner(kNonce);
  const std::string piece(1024, 'n');
  for (int i = 0; i < 64; ++i) REQUIRE(scanner.take(piece) == State::kLooking);
  CHECK(scanner.take("n") == State::kTooMuchNoise);
}

TEST_CASE("nonces are 128 random bits in hexadecimal digits") {
  const auto one = make_nonce();
  const auto other = make_nonce();
  REQUIRE(one);
  REQUIRE(other);
  CHECK(one->size() == 32);
  CHECK(one->find_first_not_of("0123456789abcdef") == std::string::npos);
  CHECK(*one != *other);
}
