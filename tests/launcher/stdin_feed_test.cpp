#include "launcher/node/io_forwarding.h"

#include "launcher/loop_driver.h"
#include "support/pipes.h"

using namespace ddl::launcher;
using namespace ddl::launcher::test;
using namespace ddl::test;

namespace {

struct FeedFixture {
  FeedFixture() { ignore_sigpipe(); }

  /// Adds a rank and returns its end of the pipe, non-blocking.
  ddl::UniqueFd add_rank() {
    auto pipe = test_pipe();
    feed.add(std::move(pipe.second));
    REQUIRE(ddl::set_nonblocking(pipe.first.get(), true));
    return std::move(pipe.first);
  }

  EventLoop loop;
  LoopDriver driver{loop};
  std::int64_t taken = 0;
  int closed = 0;
  StdinFeed feed{loop,
                 {[this](std::int64_t bytes) {
                    CHECK(bytes > 0);
                    taken += bytes;
                    driver.check();
                  },
                  [this] {
                    ++closed;
                    driver.check();
                  }}};
};

constexpr std::size_t kMuch = 1 << 20;  // more than a pipe holds

}  // namespace

TEST_CASE_METHOD(FeedFixture, "every reading rank gets all bytes, then the end") {
  const auto first = add_rank();
  const auto second = add_rank();
  feed.send("hello ");
  feed.send("world");
  CHECK(taken == 11);
  feed.end();
  CHECK(closed == 1);
  for (const auto& rank : {first.get(), second.get()}) {
    CHECK(read_available(rank) == "hello world");
    char byte;
    CHECK(::read(rank, &byte, 1) == 0);
  }
}

TEST_CASE_METHOD(FeedFixture, "only the bytes that the slowest rank has read are credited") {
  const auto quick = add_rank();
  const auto slow = add_rank();
  feed.send(std::string(kMuch, 'x'));
  CHECK(taken > 0);
  CHECK(taken < static_cast<std::int64_t>(kMuch));
  const auto first_taken = taken;
  std::size_t quick_got = read_available(quick.get()).size();
  driver.run_ready();
  quick_got += read_available(quick.get()).size();
  CHECK(quick_got > static_cast<std::size_t>(first_taken));
  CHECK(taken == first_taken);  // the other one has not read anything

  std::size_t slow_got = 0;
  while (slow_got < kMuch) {
    slow_got += read_available(slow.get()).size();
    quick_got += read_available(quick.get()).size();
    driver.run_ready();
  }
  CHECK(slow_got == kMuch);
  CHECK(taken == static_cast<std::int64_t>(kMuch));
}

TEST_CASE_METHOD(FeedFixture, "the end is delivered after a slow rank has read everything") {
  const auto rank = add_rank();
  feed.send(std::string(kMuch, 'x'));
  feed.end();
  CHECK(closed == 0);
  std::size_t got = 0;
  while (closed == 0) {
    got += read_available(rank.get()).size();
    driver.run_ready();
  }
  got += read_available(rank.get()).size();
  CHECK(got == kMuch);
  char byte;
  CHECK(::read(rank.get(), &byte, 1) == 0);
  CHECK(taken == static_cast<std::int64_t>(kMuch));
}

TEST_CASE_METHOD(FeedFixture, "a rank that closes its standard input does not block the others") {
  auto quitter = add_rank();
  const auto reader = add_rank();
  feed.send(std::string(kMuch, 'x'));
  const auto before = taken;
  std::size_t got = read_available(reader.get()).size();
  driver.run_ready();
  CHECK(taken == before);
  quitter.reset();
  driver.run_until("credit for the one that still reads", [&] { return taken > before; });
  while (got < kMuch) {
    got += read_available(reader.get()).size();
    driver.run_ready();
  }
  CHECK(taken == static_cast<std::int64_t>(kMuch));
  CHECK(closed == 0);
}

TEST_CASE_METHOD(FeedFixture,
                 "when no rank reads any more, that is reported once, and later bytes count as read") {
  auto rank = add_rank();
  feed.send("x");
  rank.reset();
  CHECK(closed == 0);
  feed.send("yy");
  CHECK(closed == 1);
  CHECK(taken == 3);
  feed.send("zzz");
  feed.end();
  CHECK(closed == 1);
  CHECK(taken == 6);
}

TEST_CASE_METHOD(FeedFixture, "without any reading rank, the first bytes or the end report that") {
  SECTION("bytes") { feed.send("x"); }
  SECTION("end") { feed.end(); }
  CHECK(closed == 1);
}
