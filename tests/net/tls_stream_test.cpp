// Two sides of a TLS connection that know a key, or do not.
#include "net/tls_stream.h"

#include <sys/socket.h>
#include <unistd.h>

#include <csignal>

#include "support/catch.h"

using ddl::UniqueFd;
using ddl::net::JobKey;
using ddl::net::preshared_key;
using ddl::net::TlsStream;
using Step = TlsStream::Step;

namespace {

struct Pair {
  UniqueFd server;
  UniqueFd client;
};

Pair sockets() {
  auto pair = ddl::make_socket_pair(SOCK_STREAM);
  REQUIRE(pair);
  return {std::move(pair->first), std::move(pair->second)};
}

/// A closed peer must not kill a process that uses TLS.
const auto kIgnored = std::signal(SIGPIPE, SIG_IGN);

/// Both sides take steps in turn until neither wants another. Returns the last step of each.
std::pair<Step, Step> shake(TlsStream& server, TlsStream& client) {
  Step ours = Step::kWantRead;
  Step theirs = Step::kWantRead;
  for (int round = 0; round < 10; ++round) {
    if (theirs == Step::kWantRead) theirs = client.handshake();
    if (ours == Step::kWantRead) ours = server.handshake();
  }
  return {ours, theirs};
}

TlsStream server_for(UniqueFd socket, const JobKey& key, const std::string& expected) {
  auto made = TlsStream::accepted(std::move(socket), [&key, expected](std::string_view identity) {
    return identity == expected ? std::optional(preshared_key(key, identity)) : std::nullopt;
  });
  REQUIRE(made);
  return *std::move(made);
}

TlsStream client_with(UniqueFd socket, const JobKey& key, const std::string& name,
                      const std::string& key_of) {
  auto made = TlsStream::connected(std::move(socket), name, preshared_key(key, key_of));
  REQUIRE(made);
  return *std::move(made);
}

}  // namespace

TEST_CASE("a peer with the key is accepted under its name, and bytes arrive as they were sent") {
  const JobKey key = JobKey::random().value();
  Pair pair = sockets();
  TlsStream server = server_for(std::move(pair.server), key, "node2");
  TlsStream client = client_with(std::move(pair.client), key, "node2", "node2");
  REQUIRE(shake(server, client) == std::pair(Step::kDone, Step::kDone));
  CHECK(server.peer_identity() == "node2");
  std::size_t put = 0;
  std::size_t got = 0;
  std::array<char, 100> buffer;
  for (const auto& [from, to] : {std::pair(&client, &server), std::pair(&server, &client)}) {
    REQUIRE(from->write("a secret word", put) == Step::kDone);
    CHECK(put == 13);
    REQUIRE(to->read(buffer, got) == Step::kDone);
    CHECK(std::string_view(buffer.data(), got) == "a secret word");
    CHECK(to->read(buffer, got) == Step::kWantRead);
  }
  client.close_notify();
  CHECK(server.read(buffer, got) == Step::kClosed);
}

TEST_CASE("a peer without the key, or with another name, is refused") {
  const JobKey key = JobKey::random().value();
  const JobKey other = JobKey::random().value();
  struct Intruder {
    const JobKey& key;
    std::string name;
    std::string key_of;
  };
  for (const Intruder& one :
       {Intruder{other, "node2", "node2"}, {key, "node3", "node3"}, {key, "node2", "node3"}}) {
    Pair pair = sockets();
    TlsStream server = server_for(std::move(pair.server), key, "node2");
    TlsStream client = client_with(std::move(pair.client), one.key, one.name, one.key_of);
    CHECK(shake(server, client).first == Step::kFailed);
    CHECK(server.peer_identity().empty());
  }
}

TEST_CASE("bytes that are not TLS, or a closed connection, fail the handshake") {
  const JobKey key = JobKey::random().value();
  Pair pair = sockets();
  TlsStream server = server_for(std::move(pair.server), key, "node2");
  REQUIRE(::write(pair.client.get(), "GET / HTTP/1.0\r\n\r\n", 18) == 18);
  CHECK(server.handshake() == Step::kFailed);
  Pair ended = sockets();
  TlsStream lonely = server_for(std::move(ended.server), key, "node2");
  CHECK(lonely.handshake() == Step::kWantRead);
  ended.client.reset();
  CHECK(lonely.handshake() == Step::kFailed);
}

TEST_CASE("more bytes than the socket takes are written in pieces") {
  const JobKey key = JobKey::random().value();
  Pair pair = sockets();
  TlsStream server = server_for(std::move(pair.server), key, "n");
  TlsStream client = client_with(std::move(pair.client), key, "n", "n");
  REQUIRE(shake(server, client) == std::pair(Step::kDone, Step::kDone));
  const std::string sent(std::size_t{4} << 20, 'x');
  std::string received;
  std::vector<char> buffer(1 << 16);
  std::size_t at = 0;
  while (received.size() < sent.size()) {
    std::size_t put = 0;
    std::size_t got = 0;
    if (at < sent.size() && client.write(std::string_view(sent).substr(at), put) == Step::kDone) at += put;
    if (server.read(buffer, got) == Step::kDone) received.append(buffer.data(), got);
  }
  CHECK(received == sent);
}
