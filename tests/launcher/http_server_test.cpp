// The HTTP server with clients on raw sockets: polite, slow, silent, oversized, hostile.
#include "launcher/http/http_server.h"

#include <netinet/in.h>
#include <sys/fsuid.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <future>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "base/fd.h"
#include "support/catch.h"
#include "support/skip.h"

using namespace ddl;
using namespace ddl::launcher;
using namespace std::chrono_literals;
using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;

namespace {

HttpLimits small_limits(std::chrono::milliseconds client_time = 10s) {
  HttpLimits limits;
  limits.header_bytes = 1024;
  limits.body_bytes = 4096;
  limits.connections = 8;
  limits.client_time = client_time;
  return limits;
}

/// A server and its loop, in a thread of their own. It answers with "METHOD PATH BODY" and status 200; /status/N with
/// N; /large with 64 MiB; a request for /hold waits for release().
class EchoServer {
 public:
  explicit EchoServer(const HttpLimits& limits = small_limits(), const HttpAccess& access = {}) {
    auto server = HttpServer::open(
        loop_, [this](HttpServer::Id id, HttpRequest&& request) { on_request(id, request); }, limits, access);
    REQUIRE(server);
    server_ = *std::move(server);
    port_ = server_->address().port();
    thread_ = std::thread([this] { loop_.run(); });
  }
  ~EchoServer() {
    loop_.post([this] {
      server_.reset();
      loop_.stop();
    });
    thread_.join();
  }

  std::uint16_t port() const { return port_; }
  std::size_t requests() const {
    const std::lock_guard lock(mutex_);
    return requests_;
  }
  void wait_for_requests(std::size_t count) const {
    std::unique_lock lock(mutex_);
    REQUIRE(more_requests_.wait_for(lock, 20s, [&] { return requests_ >= count; }));
  }
  /// Answers those that wait, the last one first.
  void release() {
    loop_.post([this] {
      for (; !held_.empty(); held_.pop_back()) server_->answer(held_.back(), {200, "released", ""});
    });
  }
  void pause() {
    on_loop([this] { server_->pause(); });
  }
  void release_and_pause() {
    on_loop([this] {
      for (; !held_.empty(); held_.pop_back()) server_->answer(held_.back(), {200, "released", ""});
      server_->pause();
    });
  }
  void resume() {
    on_loop([this] { REQUIRE(server_->resume()); });
  }
  /// Returns how long it took.
  std::chrono::milliseconds end_server() {
    std::promise<std::chrono::milliseconds> time;
    loop_.post([&] {
      const auto begin = std::chrono::steady_clock::now();
      server_.reset();
      time.set_value(
          std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - begin));
    });
    return time.get_future().get();
  }

 private:
  void on_loop(const std::function<void()>& act) {
    std::promise<void> done;
    loop_.post([&] {
      act();
      done.set_value();
    });
    done.get_future().get();
  }
  void on_request(HttpServer::Id id, const HttpRequest& request) {
    {
      // Before it is answered: the client may look at the count as soon as it has the answer.
      const std::lock_guard lock(mutex_);
      ++requests_;
      more_requests_.notify_all();
    }
    ids_are_new_ = ids_are_new_ && ids_.insert(id).second;
    if (request.path == "/hold") {
      held_.push_back(id);
    } else if (request.path == "/large") {
      server_->answer(id, {200, std::string(std::size_t{64} << 20, 'x'), ""});
    } else if (request.path == "/end") {
      server_.reset();
    } else if (request.path.starts_with("/status/")) {
      server_->answer(id,
                      {std::stoi(request.path.substr(8)), ids_are_new_ ? "" : "an id was used twice", ""});
    } else {
      server_->answer(id, {200, request.method + " " + request.path + " " + request.body, ""});
      server_->answer(id, {500, "a second answer", ""});  // does nothing
    }
  }

  EventLoop loop_;
  std::unique_ptr<HttpServer> server_;
  std::uint16_t port_ = 0;
  std::set<HttpServer::Id> ids_;
  bool ids_are_new_ = true;
  std::vector<HttpServer::Id> held_;
  mutable std::mutex mutex_;
  mutable std::condition_variable more_requests_;
  std::size_t requests_ = 0;
  std::thread thread_;
};

struct Response {
  int status = 0;
  std::string head;
  std::string body;
};

class Client {
 public:
  explicit Client(
      std::uint16_t port, const std::function<void()>& before_connect = [] {})
      : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in in{};
    in.sin_family = AF_INET;
    in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    in.sin_port = htons(port);
    const timeval limit{20, 0};
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    before_connect();
    REQUIRE(::connect(socket_.get(), reinterpret_cast<sockaddr*>(&in), sizeof in) == 0);
  }

  /// False if the server has closed the connection.
  bool send(std::string_view text) {
    while (!text.empty()) {
      const ssize_t sent = ::send(socket_.get(), text.data(), text.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      text.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
  }
  /// Without a Content-Length the test fails; at the end of the connection the status is 0.
  Response receive() {
    std::size_t end = 0;
    while ((end = received_.find("\r\n\r\n")) == std::string::npos)
      if (!read_some()) return {};
    Response response;
    response.head = received_.substr(0, end + 2);
    if (response.head == "HTTP/1.1 100 Continue\r\n") {
      ++continues_;
      received_.erase(0, end + 4);
      return receive();
    }
    REQUIRE_THAT(response.head, StartsWith("HTTP/1."));
    response.status = std::stoi(response.head.substr(9));
    const std::size_t length = response.head.find("\r\nContent-Length: ");
    REQUIRE(length != std::string::npos);
    const std::size_t size = end + 4 + std::stoul(response.head.substr(length + 18));
    while (received_.size() < size)
      if (!read_some()) return {};
    response.body = received_.substr(end + 4, size - end - 4);
    received_.erase(0, size);
    return response;
  }
  /// False if the connection ends or nothing comes. receive() returns what has come.
  bool wait_for_bytes() { return read_some(); }
  Response ask(std::string_view text) {
    send(text);
    return receive();
  }
  /// Whether the server ends the connection before the client loses its patience; the rest is dropped.
  bool is_ended() {
    while (read_some()) received_.clear();
    return !is_out_of_patience_;
  }
  void reset() {
    const linger at_once{1, 0};
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    socket_.reset();
  }
  /// How often the server has asked for the body.
  int continues() const { return continues_; }
  void stop_sending() { ::shutdown(socket_.get(), SHUT_WR); }

 private:
  bool read_some() {
    char buffer[65536];
    const ssize_t got = ::recv(socket_.get(), buffer, sizeof buffer, 0);
    is_out_of_patience_ = got < 0 && errno == EAGAIN;
    if (got <= 0) return false;
    received_.append(buffer, static_cast<std::size_t>(got));
    return true;
  }

  UniqueFd socket_;
  std::string received_;
  bool is_out_of_patience_ = false;
  int continues_ = 0;
};

std::string get(const std::string& path) { return "GET " + path + " HTTP/1.1\r\nHost: x\r\n\r\n"; }
std::string put(const std::string& path, const std::string& body) {
  return "PUT " + path + " HTTP/1.1\r\nHost: x\r\nContent-Length: " + std::to_string(body.size()) +
         "\r\n\r\n" + body;
}

void check_serves(const EchoServer& server) {
  Client client(server.port());
  CHECK(client.ask(get("/still/there")).body == "GET /still/there ");
}

}  // namespace

TEST_CASE("several requests on a connection are answered one after the other, with their lengths") {
  const EchoServer server;
  Client client(server.port());
  CHECK(client.ask(get("/global/rank_0")).body == "GET /global/rank_0 ");
  const std::string bytes("a\0\r\n\xff", 5);
  CHECK(client.ask(put("/global/0", bytes)).body == "PUT /global/0 " + bytes);
  CHECK(client.ask("DELETE /global/0 HTTP/1.1\r\n\r\n").body == "DELETE /global/0 ");
  CHECK(client.ask(put("/a/b", "")).body == "PUT /a/b ");
  CHECK(client.ask(get("/not/decoded%2f?q#f")).body == "GET /not/decoded%2f?q#f ");
}

TEST_CASE("statuses are passed on, and an empty body has a length, too") {
  const EchoServer server;
  Client client(server.port());
  for (const int status : {200, 400, 404, 413, 507}) {
    const Response response = client.ask(get("/status/" + std::to_string(status)));
    CHECK(response.status == status);
    CHECK(response.body.empty());
  }
}

TEST_CASE("a connection ends after the answer if the client wants it, or speaks HTTP/1.0") {
  const EchoServer server;
  for (const char* request :
       {"GET /a/b HTTP/1.1\r\nConnection: close\r\n\r\n", "GET /a/b HTTP/1.0\r\n\r\n"}) {
    Client client(server.port());
    CHECK(client.ask(request).body == "GET /a/b ");
    CHECK(client.is_ended());
  }
  Client kept(server.port());
  for (int i = 0; i < 2; ++i)
    CHECK(kept.ask("GET /a/b HTTP/1.0\r\nConnection: keep-alive\r\n\r\n").body == "GET /a/b ");
}

TEST_CASE("requests that come at once are answered in their order") {
  const EchoServer server;
  Client client(server.port());
  std::string all;
  for (int i = 0; i < 50; ++i) {
    all += put("/s/" + std::to_string(i), std::string(static_cast<std::size_t>(i), 'x'));
    all += get("/s/" + std::to_string(i));
  }
  REQUIRE(client.send(all));
  client.stop_sending();
  for (int i = 0; i < 50; ++i) {
    const std::string path = "/s/" + std::to_string(i);
    CHECK(client.receive().body == "PUT " + path + " " + std::string(static_cast<std::size_t>(i), 'x'));
    CHECK(client.receive().body == "GET " + path + " ");
  }
  CHECK(client.is_ended());
}

TEST_CASE("a client that sends nothing more gets its answer") {
  const EchoServer server;
  for (int i = 0; i < 20; ++i) {
    Client client(server.port());
    REQUIRE(client.send(put("/a/b", "xyz")));
    client.stop_sending();
    CHECK(client.receive().body == "PUT /a/b xyz");
    CHECK(client.is_ended());
  }
}

TEST_CASE("a request may come byte by byte, in chunks, or wait for 100 Continue") {
  const EchoServer server;
  Client client(server.port());
  for (const char byte : put("/a/b", "xyz")) REQUIRE(client.send(std::string_view(&byte, 1)));
  CHECK(client.receive().body == "PUT /a/b xyz");
  CHECK(client
            .ask("PUT /a/c HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
                 "2\r\nxy\r\n1\r\nz\r\n0\r\n\r\n")
            .body == "PUT /a/c xyz");
  REQUIRE(client.send("PUT /a/d HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n"));
  CHECK(client.wait_for_bytes());
  CHECK(client.ask("xyz").body == "PUT /a/d xyz");
  CHECK(client.continues() == 1);
}

TEST_CASE("a body over the limit is 413, however it is announced, and the largest allowed one is read") {
  const EchoServer server;
  {
    Client client(server.port());
    CHECK(client.ask(put("/a/b", std::string(4096, 'x'))).body.size() == 9 + 4096);
    CHECK(client.ask(put("/a/b", std::string(4097, 'x'))).status == 413);
    CHECK(client.is_ended());
  }
  {
    Client client(server.port());
    CHECK(client.ask(put("/a/b", std::string(std::size_t{8} << 20, 'x'))).status == 413);
  }
  {
    Client client(server.port());
    CHECK(client.ask("PUT /a/b HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1001\r\n").status == 413);
  }
  CHECK(server.requests() == 1);
  check_serves(server);
}

TEST_CASE("a header over the limit and lines that never end are refused") {
  const EchoServer server;
  for (const std::string& text :
       {get("/a/" + std::string(2000, 'k')), "GET /a/b HTTP/1.1\r\nX: " + std::string(2000, 'x') + "\r\n\r\n",
        std::string(3000, 'x'), "GET /a/b HTTP/1.1\r\n" + std::string(3000, 'x')}) {
    Client client(server.port());
    client.send(text);
    CHECK(client.is_ended());
  }
  CHECK(server.requests() == 0);
  check_serves(server);
}

TEST_CASE("what is not a request of HTTP is refused, and ends the connection") {
  const EchoServer server;
  for (const std::string& text :
       {std::string("\r\n\r\n"), std::string("hello\r\n\r\n"), std::string(200, '\0') + "\r\n\r\n",
        std::string("GET /a/b HTTP/9\r\n\r\n"), std::string("GET /a/b\r\n\r\n"),
        std::string("PUT /a/b HTTP/1.1\r\nContent-Length: -1\r\n\r\n"),
        std::string("PUT /a/b HTTP/1.1\r\nContent-Length: 12x\r\n\r\n"),
        std::string("PUT /a/b HTTP/1.1\r\nContent-Length: 99999999999999999999999\r\n\r\n"),
        std::string("PUT /a/b HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nnone\r\n"),
        std::string("GET /a/b HTTP/1.1\r\nno colon\r\n\r\n"),
        std::string("\x16\x03\x01\x02\x00\x01\r\n\r\n", 10)}) {
    CAPTURE(text);
    Client client(server.port());
    client.send(text);
    client.stop_sending();
    CHECK(client.is_ended());
  }
  CHECK(server.requests() == 0);
  check_serves(server);
}

TEST_CASE("other methods are not served") {
  const EchoServer server;
  for (const std::string method : {"POST", "PATCH", "OPTIONS", "TRACE", "NONSENSE"}) {
    CAPTURE(method);
    Client client(server.port());
    const Response response = client.ask(method + " /a/b HTTP/1.1\r\n\r\n");
    CHECK(response.status != 200);
    CHECK(client.is_ended());
  }
  CHECK(server.requests() == 0);
}

TEST_CASE("clients that are silent or slow lose their connection, also between two requests") {
  const EchoServer server(small_limits(300ms));
  Client silent(server.port()), half(server.port()), kept(server.port()), slow(server.port());
  REQUIRE(half.send("PUT /a/b HTTP/1.1\r\nContent-Length: 10\r\n\r\nx"));
  CHECK(kept.ask(get("/a/b")).status == 200);
  // A byte is not enough to keep a connection: no pause is as long as the limit.
  const auto begin = std::chrono::steady_clock::now();
  while (slow.send("x") && std::chrono::steady_clock::now() - begin < 20s) std::this_thread::sleep_for(20ms);
  CHECK(std::chrono::steady_clock::now() - begin < 20s);
  CHECK(silent.is_ended());
  CHECK(half.is_ended());
  CHECK(kept.is_ended());
  check_serves(server);
}

TEST_CASE("a request may wait for its answer longer than a client may be silent") {
  EchoServer server(small_limits(200ms));
  Client client(server.port());
  REQUIRE(client.send(get("/hold") + get("/a/b")));
  server.wait_for_requests(1);
  std::this_thread::sleep_for(600ms);  // longer than the limit: the connection must not end
  CHECK(server.requests() == 1);
  server.release();
  CHECK(client.receive().body == "released");
  CHECK(client.receive().body == "GET /a/b ");
}

TEST_CASE("answers may be given in any order") {
  EchoServer server;
  Client first(server.port()), second(server.port());
  REQUIRE(first.send(get("/hold")));
  server.wait_for_requests(1);
  REQUIRE(second.send(get("/hold")));
  server.wait_for_requests(2);
  check_serves(server);
  server.release();
  CHECK(second.receive().body == "released");
  CHECK(first.receive().body == "released");
}

TEST_CASE("a client that does not read its answer holds its connection no longer than the limit") {
  HttpLimits limits = small_limits(300ms);
  limits.connections = 1;
  const EchoServer server(limits);
  Client deaf(server.port());
  REQUIRE(deaf.send(get("/large")));
  server.wait_for_requests(1);
  // It may send meanwhile, but is not read without end.
  Client next(server.port());
  std::size_t sent = 0;
  while (sent < std::size_t{256} << 20 && deaf.send(std::string(65536, 'x'))) sent += 65536;
  CHECK(sent < std::size_t{256} << 20);
  CHECK(next.ask(get("/a/b")).status == 200);
}

TEST_CASE("a large answer arrives as a whole") {
  const EchoServer server;
  Client client(server.port());
  CHECK(client.ask(get("/large")).body.size() == std::size_t{64} << 20);
}

TEST_CASE("an answer to a client that has gone does nothing") {
  EchoServer server;
  for (int i = 0; i < 3; ++i) {
    Client reset(server.port()), closed(server.port());
    REQUIRE(reset.send(get("/hold")));
    REQUIRE(closed.send(get("/hold") + get("/hold")));
    server.wait_for_requests(static_cast<std::size_t>(2 * i + 2));
    reset.reset();
  }
  server.release();
  check_serves(server);
}

TEST_CASE("more clients than connections wait for their turn") {
  const EchoServer server;
  std::vector<std::thread> threads;
  std::atomic<int> right{0};
  for (int i = 0; i < 40; ++i) {
    threads.emplace_back([&, i] {
      for (int round = 0; round < 5; ++round) {
        Client client(server.port());
        const std::string path = "/" + std::to_string(i) + "/" + std::to_string(round);
        const std::string request =
            "PUT " + path + " HTTP/1.1\r\nConnection: close\r\nContent-Length: 1\r\n\r\nx";
        if (client.ask(request).body == "PUT " + path + " x") ++right;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(right == 200);
}

TEST_CASE("a server that ends drops everything at once") {
  EchoServer server;
  Client silent(server.port()), half(server.port()), held(server.port()), deaf(server.port()),
      gone(server.port());
  REQUIRE(half.send("PUT /a/b HTTP/1.1\r\nContent-Length: 10\r\n\r\nx"));
  REQUIRE(held.send(get("/hold")));
  REQUIRE(gone.send(get("/hold")));
  REQUIRE(deaf.send(get("/large")));
  server.wait_for_requests(3);
  gone.reset();
  CHECK(server.end_server() < 5s);
  for (Client* client : {&silent, &half, &held, &deaf}) CHECK(client->is_ended());
}

TEST_CASE("a server may end while it calls, and while clients connect") {
  for (int i = 0; i < 20; ++i) {
    EchoServer server;
    Client client(server.port()), other(server.port());
    REQUIRE(other.send(get("/hold")));
    CHECK(client.ask(get("/end")).status == 0);
  }
  EventLoop loop;
  for (int i = 0; i < 20; ++i) {
    auto server = HttpServer::open(loop, [](HttpServer::Id, HttpRequest&&) {});
    REQUIRE(server);
    const std::uint16_t port = (*server)->address().port();
    Client client(port), other(port);
    client.send(get("/a/b"));
  }
}

TEST_CASE("a process of another user is refused, whether it sends something or not") {
  if (::geteuid() != 0) DDL_SKIP("only root makes sockets of another user");
  const EchoServer server;
  const auto before = static_cast<uid_t>(::setfsuid(65534));
  Client silent(server.port());
  Client other(server.port());
  ::setfsuid(before);
  const Response response = silent.receive();
  CHECK(response.status == 403);
  CHECK_THAT(response.body, Contains("only processes of user 0"));
  CHECK(silent.is_ended());
  other.send(get("/a/b"));
  CHECK(other.is_ended());
  CHECK(server.requests() == 0);
  check_serves(server);
}

TEST_CASE("processes of users who are named are served, and requests with the token") {
  if (::geteuid() != 0) DDL_SKIP("only root makes sockets of another user");
  constexpr uid_t kNamed = 65533, kOther = 65534;
  HttpAccess access;
  access.users = {kNamed};
  const auto status = [](const EchoServer& server, uid_t user, const std::string& headers) {
    const auto before = static_cast<uid_t>(::setfsuid(user));
    Client client(server.port());
    ::setfsuid(before);
    return client.ask("GET /a/b HTTP/1.1\r\n" + headers + "\r\n").status;
  };
  {
    const EchoServer server(small_limits(), access);
    CHECK(status(server, kNamed, "") == 200);
    CHECK(status(server, kOther, "Authorization: Bearer \r\n") == 403);
    CHECK(status(server, 0, "") == 200);
  }
  access.token = "0123456789abcdef";
  const EchoServer server(small_limits(), access);
  CHECK(status(server, kNamed, "") == 200);
  CHECK(status(server, kOther, "Authorization: Bearer 0123456789abcdef\r\n") == 200);
  for (const char* const wrong :
       {"", "Authorization: Bearer\r\n", "Authorization: Bearer 0123456789abcdeg\r\n",
        "Authorization: Bearer 0123456789abcdef0\r\n", "Authorization: Basic 0123456789abcdef\r\n",
        "X-Authorization: Bearer 0123456789abcdef\r\n"})
    CHECK(status(server, kOther, wrong) == 401);
  const std::size_t served = server.requests();
  const auto before = static_cast<uid_t>(::setfsuid(kOther));
  Client client(server.port());
  ::setfsuid(before);
  const Response response = client.ask(get("/a/b"));
  CHECK_THAT(response.head, Contains("\r\nWWW-Authenticate: Bearer\r\n"));
  CHECK(client.is_ended());
  CHECK(status(server, kOther, "authorization: bearer 0123456789abcdef\r\n") == 200);
  CHECK(server.requests() == served + 1);
}

TEST_CASE("a server without its thread answers when it has one again") {
  EchoServer server;
  Client kept(server.port());
  CHECK(kept.ask(get("/a/b")).status == 200);
  server.pause();
  Client waiting(server.port());
  waiting.send(get("/c/d"));
  kept.send(get("/e/f"));
  CHECK(server.requests() == 1);
  server.resume();
  CHECK(waiting.receive().body == "GET /c/d ");
  CHECK(kept.receive().body == "GET /e/f ");
  // An answer that its thread has not taken before it ends.
  waiting.send(get("/hold"));
  server.wait_for_requests(4);
  server.release_and_pause();
  server.resume();
  CHECK(waiting.receive().body == "released");
}

TEST_CASE("a server listens at the address that it was given, and says if it cannot") {
  HttpAccess access;
  access.address = *net::SocketAddress::parse("127.0.0.2:0");
  EventLoop loop;
  const auto ignore = [](HttpServer::Id, HttpRequest&&) {};
  auto server = HttpServer::open(loop, ignore, {}, access);
  REQUIRE(server);
  CHECK((*server)->address().host_text() == "127.0.0.2");
  access.address = (*server)->address();
  CHECK(access.address.port() != 0);
  const auto second = HttpServer::open(loop, ignore, {}, access);
  REQUIRE_FALSE(second);
  CHECK_THAT(second.error().message(), Contains(access.address.to_text() + ": Address already in use"));
  server->reset();
  CHECK(HttpServer::open(loop, ignore, {}, access));
}

TEST_CASE("a server without descriptors serves again when there are some") {
  const EchoServer server;
  check_serves(server);
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
  {
    rlimit none = before;
    none.rlim_cur = 0;
    Client waiting(server.port(), [&] { REQUIRE(::setrlimit(RLIMIT_NOFILE, &none) == 0); });
    REQUIRE(waiting.send(get("/a/b")));
    std::this_thread::sleep_for(50ms);  // nothing shows from outside that the server fails to accept
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &before) == 0);
    CHECK(waiting.receive().status == 200);
  }
  check_serves(server);
}
