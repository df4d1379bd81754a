// The wire-up between hosts against unauthenticated peers: no key, garbage, silence, floods, half-open connections,
// wrong addresses.
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <future>
#include <thread>

#include "net/address.h"
#include "net/handshake.h"
#include "net/tcp.h"
#include "runtime/src/wire/acceptor.h"
#include "runtime/src/wire/dialer.h"
#include "runtime/src/wire/tcp_endpoint.h"
#include "runtime/src/wire/tcp_transport.h"
#include "runtime/support/board_bootstrap.h"
#include "support/skip.h"

using namespace ddl;
using namespace ddl::runtime;
using namespace std::chrono_literals;

namespace {

std::vector<net::InterfaceAddress> loopback() {
  return {{"lo", *net::SocketAddress::parse("127.0.0.1:0"), 8}};
}

LinkHello hello_of(int rank, int to_rank = -1) {
  LinkHello hello;
  hello.generation = 1;
  hello.rank = rank;
  hello.to_rank = to_rank;
  hello.size = 2;
  hello.pid = 4711;
  hello.host = HostField::of("host" + std::to_string(rank));
  return hello;
}

bool has_part(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// A blocking connection to the acceptor.
UniqueFd connect_to(const net::SocketAddress& address) {
  auto socket = net::begin_connect(address);
  REQUIRE(socket);
  pollfd entry{socket->get(), POLLOUT, 0};
  REQUIRE(::poll(&entry, 1, 10'000) == 1);
  REQUIRE(net::connect_result(socket->get()));
  REQUIRE(set_nonblocking(socket->get(), false));
  return *std::move(socket);
}

/// Connects to an address repeatedly, as long as it lives.
class Flood {
 public:
  explicit Flood(const net::SocketAddress& address)
      : caller_([this, address] {
          std::vector<UniqueFd> sockets;
          while (!stop_) {
            if (sockets.size() > 200) sockets.clear();
            auto socket = net::begin_connect(address);
            if (socket) sockets.push_back(*std::move(socket));
          }
        }) {}
  ~Flood() {
    stop_ = true;
    caller_.join();
  }

 private:
  std::atomic<bool> stop_{false};
  std::thread caller_;
};

/// Waits until the other side has closed the connection, whatever it sent before; false after ten seconds.
bool hung_up(int socket) {
  for (;;) {
    pollfd entry{socket, POLLIN, 0};
    if (::poll(&entry, 1, 10'000) != 1) return false;
    std::array<char, 256> scrap;
    if (::recv(socket, scrap.data(), scrap.size(), 0) <= 0) return true;
  }
}

void say(int socket, const std::vector<std::byte>& bytes) {
  REQUIRE(::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size()));
}

std::vector<std::byte> raw_bytes(const std::string& text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

/// Rank 0 on one host, in a thread of its own, waiting for rank 1 of another.
class WaitingRank {
 public:
  explicit WaitingRank(std::chrono::milliseconds patience = Acceptor::kPatience,
                       const std::vector<net::InterfaceAddress>& addresses = loopback(), int sockets = 1)
      : sockets_(sockets),
        addresses_(addresses),
        acceptor_(*Acceptor::open(addresses, patience)),
        address_(acceptor_.addresses().front()),
        links_(std::async(std::launch::async, [this] {
          LinkSetup setup(key_, hello(0), acceptor_, addresses_);
          setup.expect(1, 1);
          return setup.run(Deadline::after_seconds(30));
        })) {}

  const net::JobKey& key() const { return key_; }
  const net::SocketAddress& address() const { return address_; }
  /// Rank 1 connects; returns the results of both sides.
  Result<std::vector<PeerLink>> meet_rank_1(const std::vector<net::SocketAddress>& published) {
    Acceptor own_acceptor = *Acceptor::open(loopback());
    LinkSetup setup(key_, hello(1), own_acceptor, addresses_);
    setup.dial(0, 0, published);
    return setup.run(Deadline::after_seconds(30));
  }
  Result<std::vector<PeerLink>> links() { return links_.get(); }

  /// How each introduces itself.
  LinkHello hello(int rank) const {
    LinkHello hello = hello_of(rank);
    hello.sockets = static_cast<std::uint16_t>(sockets_);
    return hello;
  }

 private:
  int sockets_;
  net::JobKey key_ = *net::JobKey::random();
  std::vector<net::InterfaceAddress> addresses_;
  Acceptor acceptor_;
  net::SocketAddress address_;
  std::future<Result<std::vector<PeerLink>>> links_;
};

/// Checks that both have the link, and that each knows the other.
void check_met(const Result<std::vector<PeerLink>>& of_0, const Result<std::vector<PeerLink>>& of_1) {
  REQUIRE(of_0);
  REQUIRE(of_1);
  REQUIRE(of_0->size() == 1);
  REQUIRE(of_1->size() == 1);
  CHECK(of_0->front().peer.describe() == "rank 1 on host1 (pid 4711)");
  CHECK(of_1->front().peer.describe() == "rank 0 on host0 (pid 4711)");
  const PeerLink &a = of_0->front(), &b = of_1->front();
  REQUIRE(a.data.size() == b.data.size());
  for (std::size_t i = 0; i <= a.data.size(); ++i) {
    const bool is_control = i == a.data.size();
    const int from = is_control ? a.control.get() : a.data[i].get();
    const int to = is_control ? b.control.get() : b.data[i].get();
    const char sent = is_control ? 'c' : static_cast<char>('0' + i);
    char got = 0;
    REQUIRE(::send(from, &sent, 1, 0) == 1);
    pollfd entry{to, POLLIN, 0};
    REQUIRE(::poll(&entry, 1, 10'000) == 1);
    REQUIRE(::recv(to, &got, 1, 0) == 1);
    CHECK(got == sent);
  }
}

}  // namespace

TEST_CASE("two ranks connect, and their connections are correct") {
  WaitingRank rank_0;
  const auto of_1 = rank_0.meet_rank_1({rank_0.address()});
  check_met(rank_0.links(), of_1);
  CHECK(has_part(of_1->front().how, "127.0.0.1:"));
  CHECK(has_part(of_1->front().how, " from lo, in a network of this host"));
}

TEST_CASE("two ranks that want several data connections have them in the same order") {
  const int sockets = GENERATE(2, 4, 8);
  WaitingRank rank_0(Acceptor::kPatience, loopback(), sockets);
  const auto of_1 = rank_0.meet_rank_1({rank_0.address()});
  const auto of_0 = rank_0.links();
  check_met(of_0, of_1);
  CHECK(of_0->front().data.size() == static_cast<std::size_t>(sockets));
}

TEST_CASE(
    "two ranks that want several data connections connect while unauthenticated peers flood one of them") {
  WaitingRank rank_0(Acceptor::kPatience, loopback(), 4);
  const Flood flood(rank_0.address());
  const auto of_1 = rank_0.meet_rank_1({rank_0.address()});
  const auto of_0 = rank_0.links();
  check_met(of_0, of_1);
}

TEST_CASE("two ranks connect over IPv6 if there is no IPv4") {
  const auto all = net::local_addresses();
  REQUIRE(all);
  const bool has_v6 = std::any_of(all->begin(), all->end(),
                                  [](const auto& entry) { return entry.address.host_text() == "::1"; });
  if (!has_v6) DDL_SKIP("this machine has no IPv6");
  WaitingRank rank_0(Acceptor::kPatience, {{"lo", *net::SocketAddress::parse("[::1]:0"), 128}});
  CHECK(rank_0.address().host_text() == "::1");
  const auto of_1 = rank_0.meet_rank_1({rank_0.address()});
  check_met(rank_0.links(), of_1);
  CHECK(has_part(of_1->front().how, "[::1]:"));
}

TEST_CASE(
    "unauthenticated peers are rejected at their first invalid byte, and the ranks connect nevertheless") {
  WaitingRank rank_0;
  std::vector<UniqueFd> strangers;
  for (const std::string& words : {std::string("GET / HTTP/1.1\r\n\r\n"), std::string(100'000, '\0'),
                                   std::string("\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF")}) {
    strangers.push_back(connect_to(rank_0.address()));
    say(strangers.back().get(), raw_bytes(words));
    CHECK(hung_up(strangers.back().get()));
  }
  // A peer that knows the protocol but not the key is answered with a challenge, and its proof is refused.
  strangers.push_back(connect_to(rank_0.address()));
  say(strangers.back().get(), raw_bytes("ddlauth1" + std::string(net::kNonceBytes, 'n')));
  say(strangers.back().get(), std::vector<std::byte>(net::kIntroductionBytes + net::kMacBytes));
  CHECK(hung_up(strangers.back().get()));
  // Half open: one that sent half of an opening and nothing more, and one that reset the connection.
  strangers.push_back(connect_to(rank_0.address()));
  say(strangers.back().get(), raw_bytes("ddlau"));
  UniqueFd broken = connect_to(rank_0.address());
  const linger at_once{1, 0};
  ::setsockopt(broken.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  broken.reset();

  const auto of_1 = rank_0.meet_rank_1({rank_0.address()});
  check_met(rank_0.links(), of_1);
}

TEST_CASE("a caller that stays silent is rejected at its deadline") {
  WaitingRank rank_0(50ms);
  UniqueFd silent = connect_to(rank_0.address());
  UniqueFd half = connect_to(rank_0.address());
  say(half.get(), raw_bytes("ddlauth1"));
  CHECK(hung_up(silent.get()));
  CHECK(hung_up(half.get()));
  const auto of_1 = rank_0.meet_rank_1({rank_0.address()});
  check_met(rank_0.links(), of_1);
}

TEST_CASE("a flood of callers costs no more than the limit and keeps no rank out") {
  WaitingRank rank_0;
  std::vector<UniqueFd> flood;
  for (std::size_t i = 0; i < 3 * Acceptor::kMaxCallers; ++i) flood.push_back(connect_to(rank_0.address()));
  const auto of_1 = rank_0.meet_rank_1({rank_0.address()});
  check_met(rank_0.links(), of_1);
  // The callers from before the limit was reached have been rejected.
  CHECK(hung_up(flood.front().get()));
  CHECK(hung_up(flood[Acceptor::kMaxCallers].get()));
}

TEST_CASE("callers that take the last descriptor are rejected, and the rank gets no error") {
  auto acceptor = Acceptor::open(loopback());
  REQUIRE(acceptor);
  const auto key = net::JobKey::random();
  REQUIRE(key);
  const auto own = hello_of(0).to_introduction();
  std::vector<UniqueFd> callers;
  for (int i = 0; i < 8; ++i) callers.push_back(connect_to(acceptor->addresses().front()));
  REQUIRE(acceptor->advance(*key, own));
  callers.push_back(connect_to(acceptor->addresses().front()));
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
  const int lowest_free = UniqueFd(::dup(callers.front().get())).get();
  const rlimit none_left{static_cast<rlim_t>(lowest_free), before.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &none_left) == 0);
  const auto asked = acceptor->advance(*key, own);
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &before) == 0);
  REQUIRE(asked);
  CHECK(acceptor->refusals() == "4 callers were turned away, the last because: no descriptor was left");
  for (int i = 0; i < 4; ++i) CHECK(hung_up(callers[static_cast<std::size_t>(i)].get()));
}

TEST_CASE("a flood that goes on while the ranks connect only delays them") {
  WaitingRank rank_0;
  const Flood flood(rank_0.address());
  const auto of_1 = rank_0.meet_rank_1({rank_0.address()});
  const auto of_0 = rank_0.links();
  check_met(of_0, of_1);
}

TEST_CASE("of several addresses the one that answers is taken") {
  WaitingRank rank_0;
  // One that refuses, one that accepts and never sends a byte, one where another rank of the job answers, as at the
  // address of a container bridge, and the right one.
  const auto refusing = [] {
    const auto listener = net::listen_tcp(*net::SocketAddress::parse("127.0.0.1:0"), 1);
    return *net::local_address(listener->get());
  }();
  const auto mute = net::listen_tcp(*net::SocketAddress::parse("127.0.0.1:0"), 8);
  REQUIRE(mute);

  Acceptor other_acceptor = *Acceptor::open(loopback());
  const auto other_address = other_acceptor.addresses().front();
  std::atomic<bool> stop{false};
  std::thread other_rank([&] {
    std::vector<net::HandshakeSocket> welcomed;
    while (!stop) {
      std::vector<pollfd> entries;
      other_acceptor.append_entries(entries);
      (void)::poll(entries.data(), entries.size(), 10);
      auto asked = other_acceptor.advance(rank_0.key(), hello_of(7).to_introduction());
      if (!asked) return;
      for (auto& caller : *asked) {
        caller.accept();
        (void)caller.advance();
        welcomed.push_back(std::move(caller));
      }
    }
  });
  const auto of_1 =
      rank_0.meet_rank_1({refusing, *net::local_address(mute->get()), other_address, rank_0.address()});
  stop = true;
  other_rank.join();
  check_met(rank_0.links(), of_1);
  const std::string how = of_1->front().how;
  CAPTURE(how);
  CHECK(how.find(rank_0.address().to_text()) == 0);
  CHECK(has_part(how, refusing.to_text() + ": connect: Connection refused"));
  CHECK(has_part(how, net::local_address(mute->get())->to_text() + ": not answered yet"));
  CHECK(has_part(how, other_address.to_text() + ": rank 7 answers there"));
}

TEST_CASE("of several accepted control connections, the link has the one that the caller has taken") {
  WaitingRank rank_0;
  const auto call = [&](LinkPurpose purpose, std::uint32_t number) {
    LinkHello hello = hello_of(1, 0);
    hello.purpose = purpose;
    hello.attempt = number;
    auto socket = *net::HandshakeSocket::connect(rank_0.address(), rank_0.key(), hello.to_introduction(),
                                                 Deadline::after_seconds(30));
    for (;;) {
      const auto state = socket.advance();
      REQUIRE(state);
      if (*state == net::Handshake::State::kDone) return socket.release();
      pollfd entry{socket.fd(), socket.events(), 0};
      REQUIRE(::poll(&entry, 1, 10'000) == 1);
    }
  };
  const UniqueFd taken = call(LinkPurpose::kControl, 1);
  call(LinkPurpose::kControl, 2);  // and hung up
  UniqueFd unknown = call(LinkPurpose::kData, 3);
  CHECK(hung_up(unknown.get()));
  const UniqueFd data = call(LinkPurpose::kData, 1);
  const auto links = rank_0.links();
  REQUIRE(links);
  REQUIRE(links->size() == 1);
  say(taken.get(), raw_bytes("hello"));
  pollfd entry{links->front().control.get(), POLLIN, 0};
  REQUIRE(::poll(&entry, 1, 10'000) == 1);
  std::array<char, 8> heard;
  CHECK(::recv(entry.fd, heard.data(), heard.size(), 0) == 5);
}

TEST_CASE("every data connection names its control connection, and a valid number") {
  WaitingRank rank_0(Acceptor::kPatience, loopback(), 2);
  const auto call = [&](LinkPurpose purpose, std::uint32_t number, int index = 0) {
    LinkHello hello = rank_0.hello(1);
    hello.to_rank = 0;
    hello.purpose = purpose;
    hello.attempt = number;
    hello.socket = static_cast<std::uint16_t>(index);
    auto socket = *net::HandshakeSocket::connect(rank_0.address(), rank_0.key(), hello.to_introduction(),
                                                 Deadline::after_seconds(30));
    for (;;) {
      const auto state = socket.advance();
      REQUIRE(state);
      if (*state == net::Handshake::State::kDone) return socket.release();
      pollfd entry{socket.fd(), socket.events(), 0};
      REQUIRE(::poll(&entry, 1, 10'000) == 1);
    }
  };
  const UniqueFd control = call(LinkPurpose::kControl, 1), other = call(LinkPurpose::kControl, 2);
  const UniqueFd first = call(LinkPurpose::kData, 1, 0);
  CHECK(hung_up(other.get()));
  CHECK(hung_up(call(LinkPurpose::kData, 2, 1).get()));
  CHECK(hung_up(call(LinkPurpose::kData, 1, 2).get()));
  CHECK(hung_up(call(LinkPurpose::kData, 1, 0xFFFF).get()));
  // Again, because the caller has not received the acceptance.
  const UniqueFd again = call(LinkPurpose::kData, 1, 0);
  CHECK(hung_up(first.get()));
  const UniqueFd second = call(LinkPurpose::kData, 1, 1);
  const auto links = rank_0.links();
  REQUIRE(links);
  REQUIRE(links->front().data.size() == 2);
  say(second.get(), raw_bytes("2"));
  say(again.get(), raw_bytes("1"));
  for (std::size_t i = 0; i < 2; ++i) {
    pollfd entry{links->front().data[i].get(), POLLIN, 0};
    REQUIRE(::poll(&entry, 1, 10'000) == 1);
    char heard = 0;
    CHECK(::recv(entry.fd, &heard, 1, 0) == 1);
    CHECK(heard == (i == 0 ? '1' : '2'));
  }
}

TEST_CASE(
    "a rank that is interrupted when its partner has completed their link can still send it the cause") {
  const auto key = net::JobKey::random();
  const auto addresses = loopback();
  const bool interrupted_one_dials = GENERATE(false, true);
  for (int repetition = 0; repetition < 30; ++repetition) {
    Acceptor own = *Acceptor::open(addresses), partners = *Acceptor::open(addresses);
    const UniqueFd doorbell(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    auto partner = std::async(std::launch::async, [&] {
      LinkSetup setup(*key, hello_of(1), partners, addresses);
      interrupted_one_dials ? setup.expect(0, 0) : setup.dial(0, 0, own.addresses());
      auto links = setup.run(Deadline::after_seconds(30));
      (void)::eventfd_write(doorbell.get(), 1);
      return links;
    });
    LinkSetup setup(*key, hello_of(0), own, addresses);
    interrupted_one_dials ? setup.dial(1, 1, partners.addresses()) : setup.expect(1, 1);
    auto links = setup.run(Deadline::after_seconds(30), doorbell.get());
    const auto completed = partner.get();
    REQUIRE(completed);
    if (!links) links = setup.take_established();
    bool is_told = false;
    for (const PeerLink& link : *links) {
      REQUIRE(::send(link.control.get(), "c", 1, MSG_NOSIGNAL) == 1);
      pollfd entry{completed->front().control.get(), POLLIN, 0};
      is_told = is_told || ::poll(&entry, 1, 10'000) == 1;
    }
    CHECK(is_told);
  }
}

TEST_CASE("a rank that connects to the wrong rank is not taken for another") {
  const auto key = net::JobKey::random();
  const auto addresses = loopback();
  Acceptor acceptor = *Acceptor::open(addresses);
  const auto address = acceptor.addresses().front();
  LinkHello hello = hello_of(5, 0);
  SECTION("a rank that is not expected") {}
  SECTION("meant for another rank") { hello = hello_of(1, 3); }
  SECTION("of another context of the same job") {
    hello = hello_of(1, 0);
    hello.generation = 2;
  }
  SECTION("of a job of another size") {
    hello = hello_of(1, 0);
    hello.size = 3;
  }
  LinkSetup setup(*key, hello_of(0), acceptor, addresses);
  setup.expect(1, 1);
  auto links = std::async(std::launch::async, [&] { return setup.run(Deadline::after_seconds(0.3)); });
  auto caller =
      net::HandshakeSocket::connect(address, *key, hello.to_introduction(), Deadline::after_seconds(10));
  REQUIRE(caller);
  for (;;) {
    pollfd entry{caller->fd(), caller->events(), 0};
    (void)::poll(&entry, 1, 10'000);
    const auto state = caller->advance();
    if (!state) break;  // hung up
    REQUIRE(*state == net::Handshake::State::kTalking);
  }
  const auto refused = links.get();
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message() == "not connected in time: rank 1");
}

TEST_CASE("endpoints are parsed back from their text, and anything else is refused") {
  TcpEndpoint endpoint;
  endpoint.host = "node7";
  endpoint.pid = 4711;
  endpoint.addresses = {*net::SocketAddress::parse("192.0.2.1:80"),
                        *net::SocketAddress::parse("[2001:db8::1]:90")};
  CHECK(endpoint.to_text() == "tcp node7 4711 192.0.2.1:80 [2001:db8::1]:90");
  const auto again = TcpEndpoint::parse(endpoint.to_text());
  REQUIRE(again);
  CHECK(again->host == "node7");
  CHECK(again->pid == 4711);
  CHECK(again->to_text() == endpoint.to_text());
  const auto failed = TcpEndpoint::parse("failed: no network");
  REQUIRE(failed);
  CHECK(failed->failure == "no network");
  CHECK(failed->addresses.empty());
  std::string many = "tcp node7 4711";
  for (int i = 0; i < 65; ++i) many += " 192.0.2.1:80";
  for (const std::string& text :
       {std::string(), std::string("tcp"), std::string("tcp "), std::string("udp node7 4711 192.0.2.1:80"),
        std::string("tcp 192.0.2.1:80"), std::string("tcp node7 4711"),
        std::string("tcp node7 x 192.0.2.1:80"), std::string("tcp node7 -1 192.0.2.1:80"),
        std::string("tcp  4711 192.0.2.1:80"), std::string("tcp node7 4711 nowhere:80"),
        std::string("tcp ") + std::string(65, 'n') + " 1 192.0.2.1:80", many}) {
    CAPTURE(text);
    CHECK_FALSE(TcpEndpoint::parse(text));
  }
}

TEST_CASE("a rank that cannot listen publishes the reason to the ranks that would connect") {
  runtime::test::Board board(2);
  const runtime::test::Hosts hosts = runtime::test::hosts_of_sizes({1, 1});
  runtime::test::BoardBootstrap mute(board, 0, 1, hosts), caller(board, 1, 1, hosts);
  FaultInjector fault(std::nullopt, 0);
  TcpTransport without_network({.interfaces = {"nosuch0"}}, fault),
      with_network({.interfaces = {"lo"}}, fault);
  CHECK(without_network.publish(mute));
  CHECK(with_network.publish(caller));
  const auto own = without_network.connect(mute, {{1, 1, false}}, {});
  REQUIRE_FALSE(own);
  CHECK(has_part(own.error().message(), "no network interface \"nosuch0\""));
  const auto others = with_network.connect(caller, {{0, 0, true}}, {});
  REQUIRE_FALSE(others);
  CHECK(has_part(others.error().message(), "rank 0: no network interface \"nosuch0\""));
}

TEST_CASE("a descriptor that holds no key is an error that names the variable") {
  runtime::test::Board board(2);
  runtime::test::BoardBootstrap bootstrap(board, 0, 1, runtime::test::hosts_of_sizes({1, 1}));
  FaultInjector fault(std::nullopt, 0);
  TcpTransport transport({.interfaces = {"lo"}, .job_key_fd = 999'999}, fault);
  CHECK(transport.publish(bootstrap));
  const auto links = transport.connect(bootstrap, {{1, 1, false}}, {});
  REQUIRE_FALSE(links);
  CHECK(links.error().message() ==
        "DDL_JOB_KEY_FD: descriptor 999999 does not hold a job's key: it is not open");
}
