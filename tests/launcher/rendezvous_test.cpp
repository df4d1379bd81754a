// Agents that connect by themselves: over real sockets, in this process.
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>

#include "launcher/fleet/rendezvous.h"
#include "launcher/protocol/codec.h"
#include "net/tcp.h"
#include "support/catch.h"

using namespace ddl::launcher;
using ddl::UniqueFd;

namespace {

const auto kIgnored = std::signal(SIGPIPE, SIG_IGN);

/// The bytes that arrive within ten seconds; "" at the end of file.
std::string read_some(int fd) {
  pollfd waited{fd, POLLIN, 0};
  REQUIRE(::poll(&waited, 1, 10'000) == 1);
  std::array<char, 1000> buffer;
  const ssize_t got = ::read(fd, buffer.data(), buffer.size());
  return got > 0 ? std::string(buffer.data(), static_cast<std::size_t>(got)) : "";
}

void send_text(int fd, const std::string& text) { REQUIRE(ddl::write_all(fd, text.data(), text.size())); }

struct ListeningStarter {
  ddl::net::JobKey key = ddl::net::JobKey::random().value();
  std::unique_ptr<RendezvousStarter> starter =
      RendezvousStarter::listen(ddl::net::JobKey::from_hex(key.to_hex()).value(), "nonce").value();

  StartedAgent expect(const std::string& name) {
    AllocatedNode node;
    node.name = name;
    auto started = starter->start(node);
    REQUIRE(started);
    return *std::move(started);
  }
  message::Join join() const { return {{"127.0.0.1"}, starter->port(), key.to_hex()}; }
};

/// An agent's side.
struct Comer {
  Comer(const message::Join& join, const std::string& name) {
    auto socket = connect_to_rendezvous(join, std::chrono::seconds(10));
    REQUIRE(socket);
    const auto key = ddl::net::JobKey::from_hex(join.key);
    REQUIRE(key);
    auto stream =
        ddl::net::TlsStream::connected(*std::move(socket), name, ddl::net::preshared_key(*key, name));
    REQUIRE(stream);
    auto ends = ddl::make_socket_pair(SOCK_STREAM);
    REQUIRE(ends);
    link = std::move(ends->first);
    pump.carry(*std::move(stream), std::move(ends->second), [this] { is_refused = true; });
  }
  std::atomic<bool> is_refused{false};
  UniqueFd link;
  TlsPump pump;
};

}  // namespace

TEST_CASE("an expected agent joins, and bytes arrive in both directions, also the last before closing") {
  ListeningStarter rendezvous;
  const StartedAgent one = rendezvous.expect("node2");
  const StartedAgent other = rendezvous.expect("node3");
  auto comer = std::make_unique<Comer>(rendezvous.join(), "node2");
  send_text(comer->link.get(), "hello");
  CHECK(read_some(one.read.get()) == "hello");
  send_text(one.read.get(), "and hello to you");
  CHECK(read_some(comer->link.get()) == "and hello to you");
  send_text(comer->link.get(), "goodbye");
  comer->link.reset();
  comer.reset();
  CHECK(read_some(one.read.get()) == "goodbye");
  CHECK(read_some(one.read.get()).empty());
  const Comer third(rendezvous.join(), "node3");
  send_text(third.link.get(), "here");
  CHECK(read_some(other.read.get()) == "here");
}

TEST_CASE("many bytes arrive complete") {
  ListeningStarter rendezvous;
  const StartedAgent one = rendezvous.expect("node2");
  Comer comer(rendezvous.join(), "node2");
  const std::string sent(std::size_t{8} << 20, 'x');
  std::thread writer([&] { (void)ddl::write_all(comer.link.get(), sent.data(), sent.size()); });
  std::size_t received = 0;
  while (received < sent.size()) {
    const std::string piece = read_some(one.read.get());
    if (piece.empty()) break;
    received += piece.size();
  }
  writer.join();
  CHECK(received == sent.size());
}

TEST_CASE("a peer that is not expected, connects twice, or does not know the key, receives nothing") {
  ListeningStarter rendezvous;
  const StartedAgent one = rendezvous.expect("node2");
  const StartedAgent late = rendezvous.expect("node3");
  const Comer stranger(rendezvous.join(), "node9");
  CHECK(read_some(stranger.link.get()).empty());
  CHECK(stranger.is_refused);
  message::Join guess = rendezvous.join();
  guess.key = ddl::net::JobKey::random()->to_hex();
  const Comer guesser(guess, "node2");
  CHECK(read_some(guesser.link.get()).empty());
  CHECK(guesser.is_refused);
  const Comer right(rendezvous.join(), "node2");
  send_text(right.link.get(), "it is me");
  CHECK(read_some(one.read.get()) == "it is me");
  const Comer again(rendezvous.join(), "node2");
  CHECK(read_some(again.link.get()).empty());
  send_text(right.link.get(), "still me");
  CHECK(read_some(one.read.get()) == "still me");
}

TEST_CASE(
    "many silent connections do not exclude an agent, and the listener is closed when all have joined") {
  ListeningStarter rendezvous;
  const StartedAgent one = rendezvous.expect("node2");
  const auto address =
      ddl::net::SocketAddress::parse("127.0.0.1:" + std::to_string(rendezvous.starter->port()));
  REQUIRE(address);
  std::vector<UniqueFd> silent;
  for (int i = 0; i < 300; ++i) {  // more than may be unauthenticated
    auto socket = ddl::net::begin_connect(*address);
    REQUIRE(socket);
    silent.push_back(*std::move(socket));
  }
  const Comer comer(rendezvous.join(), "node2");
  send_text(comer.link.get(), "here");
  CHECK(read_some(one.read.get()) == "here");
  const auto hung_up = [](const UniqueFd& socket) {
    char byte = 0;
    pollfd waited{socket.get(), POLLIN, 0};
    return ::poll(&waited, 1, 60'000) == 1 && ::read(socket.get(), &byte, 1) <= 0;
  };
  CHECK(std::all_of(silent.begin(), silent.end(), hung_up));
  const auto refused = connect_to_rendezvous(rendezvous.join(), std::chrono::seconds(60));
  REQUIRE_FALSE(refused);
  CHECK_THAT(refused.error().message(), Catch::Matchers::Contains("Connection refused"));
}

TEST_CASE("an agent joins by IPv6 if there is no IPv4") {
  ListeningStarter rendezvous;
  const StartedAgent one = rendezvous.expect("node2");
  message::Join join = rendezvous.join();
  join.addresses = {"2001:db8::1", "::1"};  // the first one is for documentation and never in use
  const Comer comer(join, "node2");
  send_text(comer.link.get(), "here");
  CHECK(read_some(one.read.get()) == "here");
}

TEST_CASE("when the agent of the rendezvous has ended, the joined link ends") {
  auto rendezvous = std::make_unique<ListeningStarter>();
  StartedAgent one = rendezvous->expect("node2");
  const Comer comer(rendezvous->join(), "node2");
  send_text(comer.link.get(), "here");
  CHECK(read_some(one.read.get()) == "here");
  one.read.reset();
  CHECK(read_some(comer.link.get()).empty());
}

TEST_CASE("if no address answers, the error names the address") {
  message::Join join{{"127.0.0.1"}, 1, ddl::net::JobKey::random()->to_hex()};
  const auto none = connect_to_rendezvous(join, std::chrono::seconds(10));
  REQUIRE_FALSE(none);
  CHECK_THAT(none.error().message(), Catch::Contains("127.0.0.1:1") && Catch::Contains("refused"));
}

TEST_CASE("a Join is read from the input, and anything else is refused") {
  const auto read_bytes = [](const std::string& bytes) {
    auto pipe = ddl::make_pipe();
    REQUIRE(pipe);
    send_text(pipe->second.get(), bytes);
    pipe->second.reset();
    return read_join(pipe->first.get());
  };
  const auto framed = [](const auto& message) {
    const ddl::net::Frame frame = message::encode(message);
    std::string bytes;
    ddl::net::append_frame(bytes, frame.type, frame.payload);
    return bytes;
  };
  const message::Join join{{"10.0.0.1", "10.0.0.2"}, 4711, ddl::net::JobKey::random()->to_hex()};
  CHECK(read_bytes(framed(message::HeadToJoiningAgent(join))).value() == join);
  CHECK_FALSE(read_bytes(""));
  CHECK_FALSE(read_bytes(framed(message::HeadToJoiningAgent(join)).substr(0, 20)));
  const auto other = read_bytes(framed(message::HeadToAgent(message::Heartbeat{})));
  REQUIRE_FALSE(other);
  CHECK(other.error().message() ==
        "ddlrun sent a message of type Heartbeat, which does not go from head to joining agent");
  CHECK_FALSE(read_bytes("GET / HTTP/1.0\r\n\r\n"));
}
