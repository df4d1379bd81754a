#include "net/handshake.h"

#include <cstring>

#include "support/catch.h"

using namespace ddl;
using namespace ddl::net;

namespace {

using Role = Handshake::Role;
using State = Handshake::State;

Introduction introduction(const char* text) {
  Introduction bytes{};
  std::memcpy(bytes.data(), text, std::strlen(text));
  return bytes;
}

HandshakeNonce nonce(int fill) {
  HandshakeNonce bytes{};
  bytes.fill(static_cast<std::byte>(fill));
  return bytes;
}

JobKey key_of(int fill) {
  const std::vector<std::byte> bytes(kJobKeyBytes, static_cast<std::byte>(fill));
  return *JobKey::from_bytes(bytes);
}

/// Carries the bytes of one side to the other, in pieces of this number of bytes.
Status carry(std::vector<std::byte> bytes, Handshake& to, std::size_t piece = 1000) {
  for (std::span<const std::byte> left(bytes); !left.empty();) {
    const auto part = left.first(std::min({left.size(), piece, std::max<std::size_t>(to.wanted(), 1)}));
    if (to.wanted() == 0) return fail(ErrorCode::kProtocol, "more than was wanted");
    if (auto fed = to.feed(part); !fed) return fed;
    left = left.subspan(part.size());
  }
  return {};
}

}  // namespace

TEST_CASE("two sides that know the key learn each other's introduction") {
  const JobKey key = key_of(7);
  auto connector = *Handshake::begin(Role::kConnector, key, introduction("caller"));
  auto acceptor = *Handshake::begin(Role::kAcceptor, key, introduction("listener"));
  const std::size_t piece = GENERATE(1, 5, 1000);
  REQUIRE(carry(connector.take_output(), acceptor, piece));
  REQUIRE(carry(acceptor.take_output(), connector, piece));
  REQUIRE(carry(connector.take_output(), acceptor, piece));
  CHECK(acceptor.state() == State::kAsked);
  CHECK(connector.state() == State::kTalking);
  CHECK(acceptor.peer() == introduction("caller"));
  CHECK(acceptor.take_output().empty());
  acceptor.accept();
  REQUIRE(carry(acceptor.take_output(), connector, piece));
  CHECK(acceptor.state() == State::kDone);
  CHECK(connector.state() == State::kDone);
  CHECK(connector.peer() == introduction("listener"));
  CHECK(connector.wanted() == 0);
  CHECK(acceptor.wanted() == 0);
}

TEST_CASE(
    "a listener without the key hears nothing of the caller, and a caller without it nothing of the "
    "listener") {
  const JobKey right = key_of(7), wrong = key_of(8);
  {
    Handshake connector(Role::kConnector, right, introduction("caller"), nonce(1));
    Handshake impostor(Role::kAcceptor, wrong, introduction("impostor"), nonce(2));
    REQUIRE(carry(connector.take_output(), impostor));
    const auto refused = carry(impostor.take_output(), connector);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code() == ErrorCode::kPermissionDenied);
    CHECK(refused.error().message() == "the listener does not know the job's key");
    CHECK(connector.take_output().empty());
    CHECK(connector.state() == State::kFailed);
    CHECK_FALSE(connector.feed({}));
  }
  // The impostor answers although it could not check the challenge: as a connector that knows another key would.
  Handshake acceptor(Role::kAcceptor, right, introduction("listener"), nonce(2));
  Handshake accomplice(Role::kAcceptor, wrong, introduction("accomplice"), nonce(2));
  Handshake impostor(Role::kConnector, wrong, introduction("caller"), nonce(1));
  const auto opening = impostor.take_output();
  REQUIRE(carry(opening, acceptor));
  REQUIRE(carry(opening, accomplice));
  (void)acceptor.take_output();
  REQUIRE(carry(accomplice.take_output(), impostor));
  const auto refused = carry(impostor.take_output(), acceptor);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message() == "the caller does not know the job's key");
  CHECK(acceptor.state() == State::kFailed);
  CHECK(acceptor.take_output().empty());
  CHECK(acceptor.peer() == Introduction{});
}

TEST_CASE("no answer is good twice, in another direction or with a bit changed") {
  const JobKey key = key_of(7);
  Handshake connector(Role::kConnector, key, introduction("caller"), nonce(1));
  Handshake acceptor(Role::kAcceptor, key, introduction("listener"), nonce(2));
  const auto opening = connector.take_output();
  REQUIRE(carry(opening, acceptor));
  const auto challenge = acceptor.take_output();
  REQUIRE(carry(challenge, connector));
  const auto proof = connector.take_output();

  SECTION("replayed to a listener with another nonce") {
    Handshake other(Role::kAcceptor, key, introduction("listener"), nonce(3));
    REQUIRE(carry(opening, other));
    CHECK_FALSE(carry(proof, other));
  }
  SECTION("a caller's own challenge is not a proof") {
    auto mirrored = proof;
    std::memcpy(mirrored.data() + kIntroductionBytes, challenge.data() + kNonceBytes, kMacBytes);
    CHECK_FALSE(carry(mirrored, acceptor));
  }
  SECTION("a proof is not an acceptance") { CHECK_FALSE(carry(proof, connector)); }
  SECTION("every bit counts") {
    for (std::size_t bit = 0; bit < proof.size() * 8; bit += 7) {
      Handshake fresh(Role::kAcceptor, key, introduction("listener"), nonce(2));
      REQUIRE(carry(opening, fresh));
      auto changed = proof;
      changed[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
      CHECK_FALSE(carry(changed, fresh));
    }
  }
  SECTION("an acceptance for another caller") {
    REQUIRE(carry(proof, acceptor));
    acceptor.accept();
    const auto acceptance = acceptor.take_output();
    Handshake third(Role::kConnector, key, introduction("third"), nonce(1));
    (void)third.take_output();
    REQUIRE(carry(challenge, third));
    const auto refused = carry(acceptance, third);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().message() == "the listener's acceptance is forged");
    CHECK(carry(acceptance, connector));
  }
}

TEST_CASE("another protocol is recognised by the first byte that differs") {
  const JobKey key = key_of(7);
  for (const std::string text : {"GET / HTTP/1.1", "ddlauth2", "SSH-2.0-x", "\x16\x03\x01"}) {
    CAPTURE(text);
    auto acceptor = *Handshake::begin(Role::kAcceptor, key, introduction("listener"));
    const auto fed = acceptor.feed(std::as_bytes(std::span(text)));
    REQUIRE_FALSE(fed);
    CHECK(fed.error().message() == "the caller does not speak libddl's handshake");
    CHECK(acceptor.take_output().empty());
  }
}
