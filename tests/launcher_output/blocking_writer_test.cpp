#include "launcher/output/blocking_writer.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <thread>

#include "base/fd.h"
#include "launcher_output/fakes.h"
#include "support/catch.h"

using ddl::Deadline;
using ddl::launcher::BlockingWriter;
using ddl::launcher::is_same_file;
using ddl::test::PostQueue;

namespace {

constexpr auto kSoon = std::chrono::milliseconds(20);
constexpr auto kLate = std::chrono::seconds(60);

/// A pipe with a writer on it. Errors of the writer are collected.
struct Pipe {
  Pipe() {
    auto made = ddl::make_pipe();
    REQUIRE(made);
    pipe = std::move(*made);
    auto created = BlockingWriter::create(pipe.second.get(), queue.post(),
                                          [this](int error) { errors.push_back(error); });
    REQUIRE(created);
    writer = std::move(*created);
    pipe.second.reset();  // the writer has its own
  }
  /// Reads at least this many bytes.
  std::string read(std::size_t size) {
    std::string text;
    std::array<char, 65536> buffer;
    while (text.size() < size) {
      const ssize_t got =
          ::read(pipe.first.get(), buffer.data(), std::min(buffer.size(), size - text.size()));
      REQUIRE(got > 0);
      text.append(buffer.data(), static_cast<std::size_t>(got));
    }
    return text;
  }
  std::size_t capacity() const { return static_cast<std::size_t>(::fcntl(pipe.first.get(), F_GETPIPE_SZ)); }

  PostQueue queue;
  std::vector<int> errors;
  ddl::FdPair pipe;
  std::unique_ptr<BlockingWriter> writer;
};

}  // namespace

TEST_CASE("bytes arrive in order, and done is called for every write on the owner's thread") {
  Pipe pipe;
  int done = 0;
  std::string expected;
  for (int i = 0; i < 1000; ++i) {
    const std::string text = std::to_string(i) + "\n";
    expected += text;
    pipe.writer->write(text, [&done, owner = std::this_thread::get_id()] {
      CHECK(std::this_thread::get_id() == owner);
      ++done;
    });
  }
  CHECK(pipe.read(expected.size()) == expected);
  CHECK(pipe.queue.run_until([&] { return done == 1000; }));
  CHECK(pipe.writer->drain(Deadline::never()));
  CHECK(pipe.errors.empty());
}

TEST_CASE("a write that the reader does not take is not done, and the owner does not wait") {
  Pipe pipe;
  int done = 0;
  pipe.writer->write(std::string(pipe.capacity() + 1, 'x'), [&done] { ++done; });
  CHECK_FALSE(pipe.writer->drain(Deadline::after(kSoon)));
  pipe.queue.run_posted();
  CHECK(done == 0);
  pipe.read(pipe.capacity() + 1);
  CHECK(pipe.writer->drain(Deadline::after(kLate)));
  CHECK(pipe.queue.run_until([&] { return done == 1; }));
}

TEST_CASE("a reader that has gone is reported once, and later writes are done without being written") {
  Pipe pipe;
  pipe.pipe.first.reset();
  int done = 0;
  pipe.writer->write("one\n", [&done] { ++done; });
  CHECK(pipe.queue.run_until([&] { return done == 1; }));
  CHECK(pipe.errors == std::vector<int>{EPIPE});
  pipe.writer->write("two\n", [&done] { ++done; });
  CHECK(pipe.queue.run_until([&] { return done == 2; }));
  CHECK(pipe.errors.size() == 1);
}

TEST_CASE("a full disk is reported") {
  const ddl::UniqueFd full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  REQUIRE(full);
  PostQueue queue;
  int error = 0;
  auto writer = BlockingWriter::create(full.get(), queue.post(), [&error](int value) { error = value; });
  REQUIRE(writer);
  (*writer)->write("text", [] {});
  CHECK(queue.run_until([&] { return error != 0; }));
  CHECK(error == ENOSPC);
}

TEST_CASE("a descriptor that cannot be duplicated is an error") {
  PostQueue queue;
  CHECK_FALSE(BlockingWriter::create(-1, queue.post(), [](int) {}));
}

TEST_CASE("destroying a writer whose reader is stopped does not wait, and nothing is posted afterwards") {
  PostQueue queue;
  Pipe pipe;
  pipe.writer->write(std::string(4 * pipe.capacity(), 'x'), [] { FAIL("done after the owner was gone"); });
  pipe.writer->write("never begun", [] { FAIL("done after the owner was gone"); });
  pollfd readable{pipe.pipe.first.get(), POLLIN, 0};
  REQUIRE(::poll(&readable, 1, 60'000) == 1);  // the thread is in its write
  pipe.writer.reset();
  // The thread ends by itself once its write does: the pipe's last writing end is closed.
  CHECK(pipe.read(4 * pipe.capacity()) == std::string(4 * pipe.capacity(), 'x'));
  char rest = 0;
  CHECK(::read(pipe.pipe.first.get(), &rest, 1) == 0);
  pipe.queue.run_posted();
}

TEST_CASE("what was posted before the writer's destruction does nothing after it") {
  Pipe pipe;
  pipe.pipe.first.reset();
  pipe.writer->write("text", [] { FAIL("done after the writer was gone"); });
  CHECK(pipe.writer->drain(Deadline::after(kLate)));
  pipe.writer.reset();
  pipe.queue.run_posted();
  CHECK(pipe.errors.empty());
}

TEST_CASE("a descriptor that another process made non-blocking is written all the same") {
  auto made = ddl::make_pipe();
  REQUIRE(made);
  REQUIRE(ddl::set_nonblocking(made->second.get(), true));
  PostQueue queue;
  auto writer = BlockingWriter::create(made->second.get(), queue.post(), [](int) { FAIL("broken"); });
  REQUIRE(writer);
  const std::string text(300'000, 'x');
  int done = 0;
  (*writer)->write(text, [&done] { ++done; });
  std::string got;
  std::array<char, 4096> buffer;
  while (got.size() < text.size()) {
    const ssize_t size = ::read(made->first.get(), buffer.data(), buffer.size());
    REQUIRE(size > 0);
    got.append(buffer.data(), static_cast<std::size_t>(size));
  }
  CHECK(got == text);
  CHECK(queue.run_until([&] { return done == 1; }));
  CHECK((::fcntl(made->second.get(), F_GETFL) & O_NONBLOCK) != 0);  // not ours to change
}

TEST_CASE("a blocking descriptor stays blocking for all processes") {
  auto made = ddl::make_pipe();
  REQUIRE(made);
  PostQueue queue;
  auto writer = BlockingWriter::create(made->second.get(), queue.post(), [](int) {});
  REQUIRE(writer);
  (*writer)->write("text", [] {});
  CHECK((*writer)->drain(Deadline::after(kLate)));
  CHECK((::fcntl(made->second.get(), F_GETFL) & O_NONBLOCK) == 0);
}

TEST_CASE("the thread leaves signals to others") {
  sigset_t before;
  REQUIRE(::pthread_sigmask(SIG_SETMASK, nullptr, &before) == 0);
  Pipe pipe;
  sigset_t after;
  REQUIRE(::pthread_sigmask(SIG_SETMASK, nullptr, &after) == 0);
  for (const int signal : {SIGINT, SIGTERM, SIGPIPE, SIGCHLD, SIGTTOU}) {
    CHECK(::sigismember(&before, signal) == ::sigismember(&after, signal));
  }
}

TEST_CASE("two descriptors of one file are recognised") {
  auto one = ddl::make_pipe();
  auto other = ddl::make_pipe();
  REQUIRE(one);
  REQUIRE(other);
  const ddl::UniqueFd copy(::dup(one->second.get()));
  CHECK(is_same_file(one->second.get(), copy.get()));
  CHECK_FALSE(is_same_file(one->second.get(), other->second.get()));
  CHECK_FALSE(is_same_file(-1, -1));

  const ddl::test::TemporaryDirectory directory;
  const std::string path = directory.path() + "/file";
  const ddl::UniqueFd first(::open(path.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
  const ddl::UniqueFd second(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  CHECK(is_same_file(first.get(), second.get()));
}
