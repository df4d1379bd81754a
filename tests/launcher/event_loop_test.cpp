#include "launcher/loop/event_loop.h"

#include <sys/socket.h>

#include <memory>
#include <optional>
#include <thread>

#include "launcher/loop_driver.h"
#include "support/pipes.h"

using namespace ddl::launcher;
using namespace ddl::launcher::test;
using namespace ddl::test;
using namespace std::chrono_literals;

namespace {

struct LoopFixture {
  EventLoop loop;
  LoopDriver driver{loop};
};

}  // namespace

TEST_CASE_METHOD(LoopFixture, "a readable descriptor's handler is called until it has been read empty") {
  const auto pipe = nonblocking_pipe();
  std::string got;
  int calls = 0;
  const auto watch = loop.watch(pipe.first.get(), [&] {
    ++calls;
    char byte;
    if (::read(pipe.first.get(), &byte, 1) == 1) got += byte;
    driver.check();
  });
  write_text(pipe.second.get(), "abc");
  driver.run_until("three bytes", [&] { return got == "abc"; });
  driver.run_ready();
  CHECK(calls == 3);
}

TEST_CASE_METHOD(LoopFixture, "end of file makes a descriptor readable") {
  auto pipe = nonblocking_pipe();
  bool at_end = false;
  const auto watch = loop.watch(pipe.first.get(), [&] {
    char byte;
    at_end = ::read(pipe.first.get(), &byte, 1) == 0;
    driver.check();
  });
  pipe.second.reset();
  driver.run_until("end of file", [&] { return at_end; });
}

TEST_CASE_METHOD(
    LoopFixture,
    "a handler is not called while reading is not wanted, and bytes that came meanwhile are not lost") {
  const auto pipe = nonblocking_pipe();
  std::string got;
  auto watch = loop.watch(pipe.first.get(), [&] {
    got += read_available(pipe.first.get());
    driver.check();
  });
  watch.want_read(false);
  write_text(pipe.second.get(), "early");
  driver.run_ready();
  CHECK(got.empty());
  watch.want_read(true);
  driver.run_until("the bytes", [&] { return got == "early"; });
}

TEST_CASE_METHOD(LoopFixture, "a handler may stop wanting and another may want again") {
  const auto pipe = nonblocking_pipe();
  int calls = 0;
  EventLoop::FdWatch watch = loop.watch(pipe.first.get(), [&] {
    ++calls;  // without reading: it stays readable
    watch.want_read(false);
    driver.check();
  });
  write_text(pipe.second.get(), "x");
  driver.run_until("the first call", [&] { return calls == 1; });
  driver.run_ready();
  CHECK(calls == 1);
  loop.post([&] { watch.want_read(true); });
  driver.run_until("the second call", [&] { return calls == 2; });
}

TEST_CASE_METHOD(LoopFixture, "writing is wanted only on request, and again when there is space again") {
  const auto pair = test_socket_pair();
  REQUIRE(ddl::set_nonblocking(pair.first.get(), true));
  REQUIRE(ddl::set_nonblocking(pair.second.get(), true));
  int writable = 0;
  EventLoop::FdWatch watch = loop.watch(pair.first.get(), nullptr, [&] {
    ++writable;
    watch.want_write(false);
    driver.check();
  });
  driver.run_ready();
  CHECK(writable == 0);

  const std::string block(65536, 'x');
  while (::write(pair.first.get(), block.data(), block.size()) > 0) {
  }
  watch.want_write(true);
  driver.run_ready();
  CHECK(writable == 0);  // full
  read_available(pair.second.get());
  driver.run_until("room", [&] { return writable == 1; });
}

TEST_CASE_METHOD(LoopFixture, "both sides of a socket can be watched at once") {
  const auto pair = test_socket_pair();
  REQUIRE(ddl::set_nonblocking(pair.first.get(), true));
  std::string got;
  bool wrote = false;
  EventLoop::FdWatch watch = loop.watch(
      pair.first.get(),
      [&] {
        got += read_available(pair.first.get());
        driver.check();
      },
      [&] {
        wrote = true;
        watch.want_write(false);
        driver.check();
      });
  watch.want_write(true);
  write_text(pair.second.get(), "hello");
  driver.run_until("both", [&] { return wrote && got == "hello"; });
}

TEST_CASE_METHOD(LoopFixture, "a regular file and /dev/null, which epoll refuses, are always ready") {
  char path[] = "/tmp/ddl-event-loop-XXXXXX";
  const ddl::UniqueFd file(::mkstemp(path));
  REQUIRE(file);
  ::unlink(path);
  write_text(file.get(), "in a file");
  REQUIRE(::lseek(file.get(), 0, SEEK_SET) == 0);
  const ddl::UniqueFd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  REQUIRE(null);

  std::string got;
  bool file_ended = false;
  int null_reads = 0;
  bool null_writable = false;
  EventLoop::FdWatch file_watch = loop.watch(file.get(), [&] {
    char buffer[4];
    const ssize_t size = ::read(file.get(), buffer, sizeof buffer);
    if (size > 0) got.append(buffer, static_cast<std::size_t>(size));
    if (size == 0) {
      file_ended = true;
      file_watch.reset();
    }
    driver.check();
  });
  EventLoop::FdWatch null_watch = loop.watch(
      null.get(),
      [&] {
        ++null_reads;
        driver.check();
      },
      [&] {
        null_writable = true;
        driver.check();
      });
  null_watch.want_write(true);
  driver.run_until("all of them", [&] { return file_ended && null_reads > 2 && null_writable; });
  CHECK(got == "in a file");
}

TEST_CASE_METHOD(LoopFixture,
                 "a watch that is reset in its own handler is not called again, nor is its other side") {
  const auto pair = test_socket_pair();
  int calls = 0;
  EventLoop::FdWatch watch = loop.watch(
      pair.first.get(),
      [&] {
        ++calls;
        watch.reset();
        driver.check();
      },
      [&] {
        ++calls;
        watch.reset();
        driver.check();
      });
  watch.want_write(true);
  write_text(pair.second.get(), "x");
  driver.run_until("one of them", [&] { return calls == 1; });
  driver.run_ready();
  CHECK(calls == 1);
}

TEST_CASE_METHOD(LoopFixture,
                 "an object may destroy itself, with its watch and descriptor, in the watch's handler") {
  struct Owner {
    ddl::UniqueFd fd;
    EventLoop::FdWatch watch;
  };
  auto pipe = test_pipe();
  auto owner = std::make_unique<Owner>();
  owner->fd = std::move(pipe.first);
  bool called = false;
  std::string in_the_closure(100, 'x');
  owner->watch = loop.watch(owner->fd.get(), [&, in_the_closure] {
    owner.reset();
    called = in_the_closure == std::string(100, 'x');  // the handler itself is still there
    driver.check();
  });
  write_text(pipe.second.get(), "x");
  driver.run_until("the handler", [&] { return called; });
}

TEST_CASE_METHOD(LoopFixture, "a watch that ends leaves the descriptor open, and it can be watched anew") {
  const auto pipe = nonblocking_pipe();
  int first = 0;
  std::string second;
  {
    const auto watch = loop.watch(pipe.first.get(), [&] { ++first; });
  }
  const auto watch = loop.watch(pipe.first.get(), [&] {
    second += read_available(pipe.first.get());
    driver.check();
  });
  write_text(pipe.second.get(), "x");
  driver.run_until("the second watch", [&] { return second == "x"; });
  CHECK(first == 0);
}

// Asio makes what it waits for non-blocking; a shell whose terminal that happens to is left with a broken one.
TEST_CASE_METHOD(LoopFixture, "a blocking descriptor stays blocking while it is watched and after") {
  const auto pipe = test_pipe();
  const auto socket = test_socket_pair();
  {
    int calls = 0;
    EventLoop::FdWatch pipe_watch = loop.watch(pipe.first.get(), [&] {
      ++calls;
      pipe_watch.want_read(false);
      driver.check();
    });
    CHECK_FALSE(is_nonblocking(pipe.first.get()));
    auto socket_watch = loop.watch(
        socket.first.get(), [] {}, [&] { driver.check(); });
    socket_watch.want_write(true);
    CHECK_FALSE(is_nonblocking(socket.first.get()));
    write_text(pipe.second.get(), "x");
    driver.run_until("a call", [&] { return calls == 1; });
    pipe_watch.want_read(true);
    CHECK_FALSE(is_nonblocking(pipe.first.get()));
  }
  CHECK_FALSE(is_nonblocking(pipe.first.get()));
  CHECK_FALSE(is_nonblocking(socket.first.get()));
}

TEST_CASE_METHOD(LoopFixture, "a non-blocking descriptor stays non-blocking") {
  const auto pipe = nonblocking_pipe();
  const auto watch = loop.watch(pipe.first.get(), [] {});
  driver.run_ready();
  CHECK(is_nonblocking(pipe.first.get()));
}

TEST_CASE_METHOD(LoopFixture, "timers run once, in the order of their times") {
  std::string order;
  const auto add = [&](char name) {
    return [&, name] {
      order += name;
      driver.check();
    };
  };
  const auto late = loop.after(30ms, add('c'));
  const auto early = loop.after(1ms, add('a'));
  const auto middle = loop.after(15ms, add('b'));
  CHECK(late.is_pending());
  driver.run_until("all three", [&] { return order.size() == 3; });
  CHECK(order == "abc");
  CHECK_FALSE(late.is_pending());
}

TEST_CASE_METHOD(LoopFixture, "a timer's time is not shortened, and none or a negative one means at once") {
  const auto start = std::chrono::steady_clock::now();
  std::optional<std::chrono::steady_clock::time_point> ended;
  bool at_once = false;
  const auto timer = loop.after(20ms, [&] {
    ended = std::chrono::steady_clock::now();
    driver.check();
  });
  const auto past = loop.after(-5s, [&] { at_once = !ended; });
  driver.run_until("the timer", [&] { return ended.has_value(); });
  CHECK(*ended - start >= 20ms);
  CHECK(at_once);
}

TEST_CASE_METHOD(LoopFixture,
                 "cancelled, destroyed and replaced timers do not run, though their time has come") {
  std::string order;
  // All are due when the first handler runs, so their completions are queued already.
  EventLoop::Timer victim, destroyed_victim, replaced;
  const auto killer = loop.after(0ms, [&] {
    victim.cancel();
    { const EventLoop::Timer gone = std::move(destroyed_victim); }
    replaced = loop.after(1ms, [&] {
      order += 'r';
      driver.check();
    });
    order += 'k';
  });
  victim = loop.after(0ms, [&] { order += 'v'; });
  destroyed_victim = loop.after(0ms, [&] { order += 'd'; });
  replaced = loop.after(0ms, [&] { order += 'x'; });
  driver.run_until("the replacement", [&] { return order.ends_with('r'); });
  CHECK(order == "kr");
}

TEST_CASE_METHOD(LoopFixture, "a timer's handler may start the same timer again") {
  int ticks = 0;
  EventLoop::Timer timer;
  std::function<void()> tick = [&] {
    if (++ticks < 3) timer = loop.after(1ms, tick);
    driver.check();
  };
  timer = loop.after(1ms, tick);
  driver.run_until("three ticks", [&] { return ticks == 3; });
  CHECK_FALSE(timer.is_pending());
}

TEST_CASE_METHOD(LoopFixture,
                 "calls that other threads post run on the loop's thread, each thread's in order") {
  constexpr int kThreads = 4;
  constexpr int kCalls = 500;
  std::vector<std::vector<int>> seen(kThreads);
  int total = 0;
  bool on_other_thread = false;
  const auto loop_thread = std::this_thread::get_id();
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kCalls; ++i) {
        loop.post([&, t, i] {
          on_other_thread = on_other_thread || std::this_thread::get_id() != loop_thread;
          seen[static_cast<std::size_t>(t)].push_back(i);
          ++total;
          driver.check();
        });
      }
    });
  }
  driver.run_until("all calls", [&] { return total == kThreads * kCalls; });
  for (auto& thread : threads) thread.join();
  CHECK_FALSE(on_other_thread);
  for (const auto& numbers : seen) CHECK(std::is_sorted(numbers.begin(), numbers.end()));
}

TEST_CASE_METHOD(LoopFixture, "a post wakes a loop that waits for nothing else") {
  bool called = false;
  std::thread thread;
  loop.post([&] {  // so the loop runs already, most likely waits, when the other thread posts
    thread = std::thread([&] {
      loop.post([&] {
        called = true;
        driver.check();
      });
    });
  });
  driver.run_until("the post", [&] { return called; });
  thread.join();
}

TEST_CASE_METHOD(LoopFixture, "a function that is posted in a handler runs after it, not inside it") {
  std::string order;
  loop.post([&] {
    loop.post([&] {
      order += 'b';
      driver.check();
    });
    order += 'a';
  });
  driver.run_until("both", [&] { return order.size() == 2; });
  CHECK(order == "ab");
}

TEST_CASE_METHOD(LoopFixture, "signals arrive as calls on the loop's thread, the same one again and again") {
  std::vector<int> got;
  loop.watch_signals({SIGUSR1, SIGUSR2}, [&](int signal) {
    got.push_back(signal);
    driver.check();
  });
  for (std::size_t round = 1; round <= 3; ++round) {
    loop.post([] { ::raise(SIGUSR1); });
    driver.run_until("SIGUSR1", [&] { return got.size() == round; });
  }
  ::raise(SIGUSR2);
  driver.run_until("SIGUSR2", [&] { return got.size() == 4; });
  CHECK(got == std::vector<int>{SIGUSR1, SIGUSR1, SIGUSR1, SIGUSR2});
}

TEST_CASE("a loop that is destroyed gives its signals back, and drops those that it has not seen") {
  {
    EventLoop loop;
    loop.watch_signals({SIGUSR1}, [](int) {});
    ::raise(SIGUSR1);  // would end the test
  }
  sigset_t blocked;
  REQUIRE(::pthread_sigmask(SIG_BLOCK, nullptr, &blocked) == 0);
  CHECK(::sigismember(&blocked, SIGUSR1) == 0);
}

TEST_CASE_METHOD(LoopFixture,
                 "a signal that was blocked before and that one loop has not seen is seen by the next") {
  sigset_t held;
  sigset_t before;
  ::sigemptyset(&held);
  ::sigaddset(&held, SIGUSR1);
  ::pthread_sigmask(SIG_BLOCK, &held, &before);
  {
    EventLoop first;
    first.watch_signals({SIGUSR1}, [](int) {});
    ::raise(SIGUSR1);
  }
  int seen = 0;
  loop.watch_signals({SIGUSR1}, [&](int signal) {
    seen = signal;
    driver.check();
  });
  driver.run_until("SIGUSR1", [&] { return seen == SIGUSR1; });
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

TEST_CASE_METHOD(LoopFixture, "a loop that was stopped can run again; a stop before run() counts") {
  loop.stop();
  loop.run();  // returns at once
  bool called = false;
  loop.post([&] {
    called = true;
    loop.stop();
  });
  loop.run();
  CHECK(called);
}
