// What every Link must do, for each way in which one is made; then what is particular to a byte stream.
#include <sys/socket.h>

#include <memory>
#include <vector>

#include "base/text.h"
#include "launcher/loop_driver.h"
#include "launcher/protocol/link.h"
#include "support/pipes.h"

using namespace ddl::launcher;
using namespace ddl::launcher::test;
using namespace ddl::test;
using ddl::FdPair;
using ddl::UniqueFd;
using ddl::net::Frame;

namespace {

/// One side of a connection and what it has received.
struct Side {
  std::unique_ptr<Link> link;
  std::vector<Frame> frames;
  std::vector<std::string> closed;
  std::size_t bytes = 0;
};

struct Connection {
  explicit Connection(EventLoop& event_loop) : loop(event_loop), driver(event_loop) { ignore_sigpipe(); }

  void start(Side& side) {
    side.link->start({[this, &side](Frame frame) {
                        side.bytes += frame.payload.size();
                        side.frames.push_back(std::move(frame));
                        driver.check();
                      },
                      [this, &side](const std::string& reason) {
                        side.closed.push_back(reason);
                        driver.check();
                      }});
  }
  void start() {
    start(a);
    start(b);
  }
  void run_until(const std::string& what, std::function<bool()> condition) {
    driver.run_until(what, std::move(condition));
  }

  EventLoop& loop;
  LoopDriver driver;
  Side a;
  Side b;
};

enum class LinkKind { kSocketPair, kTwoPipes };

std::unique_ptr<Connection> connect(EventLoop& loop, LinkKind kind) {
  auto connection = std::make_unique<Connection>(loop);
  if (kind == LinkKind::kSocketPair) {
    FdPair pair = test_socket_pair();
    connection->a.link = make_stream_link(loop, std::move(pair.first));
    connection->b.link = make_stream_link(loop, std::move(pair.second));
  } else {
    FdPair to_a = test_pipe();
    FdPair to_b = test_pipe();
    connection->a.link = make_stream_link(loop, std::move(to_a.first), std::move(to_b.second));
    connection->b.link = make_stream_link(loop, std::move(to_b.first), std::move(to_a.second));
  }
  return connection;
}

std::string pattern(std::size_t size, unsigned seed) {
  std::string bytes(size, '\0');
  for (char& byte : bytes) {
    seed = seed * 1664525u + 1013904223u;
    byte = static_cast<char>(seed >> 24);
  }
  return bytes;
}

/// A link on one end of a socket pair whose other end the test holds itself, non-blocking.
struct OneSided {
  OneSided() {
    ignore_sigpipe();
    FdPair pair = test_socket_pair();
    other = std::move(pair.second);
    REQUIRE(ddl::set_nonblocking(other.get(), true));
    side.link = make_stream_link(loop, std::move(pair.first));
  }
  void start() {
    side.link->start({[this](Frame frame) {
                        side.frames.push_back(std::move(frame));
                        driver.check();
                      },
                      [this](const std::string& reason) {
                        side.closed.push_back(reason);
                        driver.check();
                      }});
  }
  EventLoop loop;
  LoopDriver driver{loop};
  Side side;
  UniqueFd other;
};

}  // namespace

TEST_CASE("a link carries frames both ways, in order and unchanged") {
  EventLoop loop;
  const auto connection = connect(loop, GENERATE(LinkKind::kSocketPair, LinkKind::kTwoPipes));
  connection->start();
  connection->a.link->send(1, "one");
  connection->a.link->send(0xffff, std::string("\0\xff", 2));
  connection->a.link->send(2, "");
  connection->b.link->send(3, "back");
  connection->run_until("all frames",
                        [&] { return connection->b.frames.size() == 3 && connection->a.frames.size() == 1; });
  CHECK(connection->b.frames[0].type == 1);
  CHECK(connection->b.frames[0].payload == "one");
  CHECK(connection->b.frames[1].type == 0xffff);
  CHECK(connection->b.frames[1].payload == std::string("\0\xff", 2));
  CHECK(connection->b.frames[2].payload.empty());
  CHECK(connection->a.frames[0].payload == "back");
  CHECK(connection->a.link->queued_bytes() == 0);
}

TEST_CASE("frames that are sent before a link is started arrive once it is") {
  EventLoop loop;
  const auto connection = connect(loop, GENERATE(LinkKind::kSocketPair, LinkKind::kTwoPipes));
  connection->a.link->send(1, "early");
  CHECK(connection->a.link->queued_bytes() == ddl::net::kFrameHeaderSize + 5);
  connection->start();
  connection->run_until("the frame", [&] { return connection->b.frames.size() == 1; });
  CHECK(connection->b.frames[0].payload == "early");
}

TEST_CASE("bursts in both directions at once arrive whole, however large") {
  EventLoop loop;
  const auto connection = connect(loop, GENERATE(LinkKind::kSocketPair, LinkKind::kTwoPipes));
  connection->start();
  std::vector<std::string> sent;
  for (const std::size_t size : {1u, 70'000u, 3'000'000u, 0u, 1'048'576u, 17u})
    sent.push_back(pattern(size, size + 1));
  for (const auto& payload : sent) {
    connection->a.link->send(1, payload);
    connection->b.link->send(2, payload);
  }
  CHECK(connection->a.link->queued_bytes() > 3'000'000);
  connection->run_until("both bursts", [&] {
    return connection->a.frames.size() == sent.size() && connection->b.frames.size() == sent.size();
  });
  for (std::size_t i = 0; i < sent.size(); ++i) {
    CAPTURE(i);
    CHECK((connection->a.frames[i].payload == sent[i]));  // not printed: megabytes
    CHECK((connection->b.frames[i].payload == sent[i]));
  }
  CHECK(connection->a.link->queued_bytes() == 0);
  CHECK(connection->b.link->queued_bytes() == 0);
}

TEST_CASE("many small frames arrive in order") {
  EventLoop loop;
  const auto connection = connect(loop, GENERATE(LinkKind::kSocketPair, LinkKind::kTwoPipes));
  connection->start();
  constexpr std::size_t kFrames = 20'000;
  for (std::size_t i = 0; i < kFrames; ++i) connection->a.link->send(1, std::to_string(i));
  connection->run_until("all frames", [&] { return connection->b.frames.size() == kFrames; });
  bool in_order = true;
  for (std::size_t i = 0; i < kFrames; ++i)
    in_order = in_order && connection->b.frames[i].payload == std::to_string(i);
  CHECK(in_order);
}

TEST_CASE("a side that goes away closes the other's link once, after everything that it had sent") {
  EventLoop loop;
  const auto connection = connect(loop, GENERATE(LinkKind::kSocketPair, LinkKind::kTwoPipes));
  connection->start();
  connection->a.link->send(1, "last words");
  connection->a.link.reset();
  connection->run_until("the close", [&] { return !connection->b.closed.empty(); });
  REQUIRE(connection->b.frames.size() == 1);
  CHECK(connection->b.frames[0].payload == "last words");
  CHECK(connection->b.closed == std::vector<std::string>{"closed by the other side"});

  connection->b.link->send(1, "into nothing");
  CHECK(connection->b.link->queued_bytes() == 0);
  connection->b.link->flush();  // returns
  connection->driver.run_ready();
  CHECK(connection->b.closed.size() == 1);
}

TEST_CASE("flush returns when everything is on its way, also before the link is started") {
  EventLoop loop;
  const auto connection = connect(loop, GENERATE(LinkKind::kSocketPair, LinkKind::kTwoPipes));
  connection->a.link->send(1, "last words");
  connection->a.link->flush();
  CHECK(connection->a.link->queued_bytes() == 0);
  connection->a.link.reset();
  connection->start(connection->b);
  connection->run_until("the close", [&] { return !connection->b.closed.empty(); });
  REQUIRE(connection->b.frames.size() == 1);
  CHECK(connection->b.frames[0].payload == "last words");
}

TEST_CASE("flush ends when the other side goes away instead of reading") {
  EventLoop loop;
  const auto connection = connect(loop, GENERATE(LinkKind::kSocketPair, LinkKind::kTwoPipes));
  connection->start();
  connection->a.link->send(1, std::string(4 << 20, 'x'));  // more than the kernel takes
  CHECK(connection->a.link->queued_bytes() > 0);
  connection->b.link.reset();
  connection->a.link->flush();
  CHECK(connection->a.link->queued_bytes() == 0);
}

TEST_CASE("a handler may send, and an answer to every frame reaches the other side") {
  EventLoop loop;
  const auto connection = connect(loop, GENERATE(LinkKind::kSocketPair, LinkKind::kTwoPipes));
  int echoes = 0;
  connection->b.link->start({[&](const Frame& frame) { connection->b.link->send(frame.type, frame.payload); },
                             [](const std::string&) {}});
  connection->a.link->start({[&](const Frame& frame) {
                               if (++echoes < 100) connection->a.link->send(1, frame.payload + "x");
                               connection->driver.check();
                             },
                             [](const std::string&) {}});
  connection->a.link->send(1, "");
  connection->run_until("100 echoes", [&] { return echoes == 100; });
}

TEST_CASE("a link may be destroyed in its on_closed") {
  EventLoop loop;
  const auto connection = connect(loop, GENERATE(LinkKind::kSocketPair, LinkKind::kTwoPipes));
  bool closed = false;
  connection->b.link->start({[](const Frame&) {},
                             [&](const std::string&) {
                               connection->b.link.reset();
                               closed = true;
                               connection->driver.check();
                             }});
  connection->a.link.reset();
  connection->run_until("the close", [&] { return closed; });
  connection->driver.run_ready();
}

TEST_CASE_METHOD(OneSided, "a stream that ends inside a frame says so") {
  start();
  std::string bytes;
  ddl::net::append_frame(bytes, 1, "whole");
  ddl::net::append_frame(bytes, 2, "cut short");
  bytes.pop_back();
  write_text(other.get(), bytes);
  other.reset();
  driver.run_until("the close", [&] { return !side.closed.empty(); });
  CHECK(side.frames.size() == 1);
  CHECK(side.closed == std::vector<std::string>{"closed by the other side in mid-message"});
}

TEST_CASE_METHOD(OneSided,
                 "bytes that are no frame close the link with the decoder's reason, and nothing follows") {
  start();
  std::string bytes;
  ddl::net::append_frame(bytes, 1, "good");
  bytes += "Last login: Tue";
  ddl::net::append_frame(bytes, 1, "behind it");
  write_text(other.get(), bytes);
  driver.run_until("the close", [&] { return !side.closed.empty(); });
  other.reset();
  driver.run_ready();
  CHECK(side.frames.size() == 1);
  REQUIRE(side.closed.size() == 1);
  CHECK(side.closed[0] != "closed by the other side");
}

TEST_CASE_METHOD(OneSided, "what the other side said before it stopped reading is heard before the close") {
  start();
  std::string bytes;
  ddl::net::append_frame(bytes, 1, "why I go");
  write_text(other.get(), bytes);
  other.reset();
  side.link->send(1, "this cannot be written");  // EPIPE comes before the frame has been read
  driver.run_until("the close", [&] { return !side.closed.empty(); });
  REQUIRE(side.frames.size() == 1);
  CHECK(side.frames[0].payload == "why I go");
}

TEST_CASE_METHOD(OneSided, "a queue that is never quite empty takes no more memory than what waits in it") {
  start();
  const auto resident_bytes = [] {
    const auto statm = ddl::read_file("/proc/self/statm");  // proc(5): total and resident pages
    REQUIRE(statm);
    return ddl::parse_integer(ddl::split(*statm, ' ').at(1)).value_or(0) * ::sysconf(_SC_PAGESIZE);
  };
  std::vector<char> sink(1 << 20);
  std::size_t received = 0;
  const auto receive = [&] {
    for (ssize_t got = 0; (got = ::read(other.get(), sink.data(), sink.size())) > 0;) {
      received += static_cast<std::size_t>(got);
    }
    driver.run_ready();
  };
  // 256 MiB pass through while two or three always wait.
  const std::string payload(1 << 20, 'x');
  const auto before = resident_bytes();
  std::size_t sent = 0;
  while (sent < 256) {
    for (; side.link->queued_bytes() < 2 * payload.size(); ++sent) side.link->send(1, payload);
    receive();
  }
  CHECK(resident_bytes() - before < 96 << 20);
  while (side.link->queued_bytes() > 0) receive();
  receive();
  CHECK(received == sent * (payload.size() + ddl::net::kFrameHeaderSize));
}

TEST_CASE("what came before the link is delivered before its end") {
  // The last messages of an agent often come in one piece with its greeting, and then nothing more.
  EventLoop loop;
  Connection connection(loop);
  FdPair to_us = test_pipe();
  FdPair to_them = test_pipe();
  std::string first_bytes;
  ddl::net::append_frame(first_bytes, 7, "no room in /tmp");
  to_us.second.reset();
  connection.a.link = make_stream_link(loop, std::move(to_us.first), std::move(to_them.second), first_bytes);
  connection.start(connection.a);
  connection.run_until("its end", [&] { return !connection.a.closed.empty(); });
  REQUIRE(connection.a.frames.size() == 1);
  CHECK(connection.a.frames[0].payload == "no room in /tmp");
  CHECK(connection.a.closed == std::vector<std::string>{"closed by the other side"});
}
