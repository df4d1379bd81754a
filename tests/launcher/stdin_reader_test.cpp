#include "launcher/head/io_forwarding.h"

#include <optional>

#include "launcher/loop_driver.h"
#include "support/pipes.h"

using namespace ddl::launcher;
using namespace ddl::launcher::test;
using namespace ddl::test;

namespace {

struct ReaderFixture {
  void open(int fd) {
    reader.emplace(loop, fd,
                   StdinReader::Handlers{[this](std::string&& piece) {
                                           bytes += piece;
                                           driver.check();
                                         },
                                         [this] {
                                           ++ends;
                                           driver.check();
                                         }});
  }

  EventLoop loop;
  LoopDriver driver{loop};
  std::string bytes;
  int ends = 0;
  std::optional<StdinReader> reader;
};

/// An unlinked file with this text, at its start.
ddl::UniqueFd file_with(std::string_view text) {
  char path[] = "/tmp/ddl-stdin-reader-XXXXXX";
  ddl::UniqueFd file(::mkstemp(path));
  REQUIRE(file);
  ::unlink(path);
  write_text(file.get(), text);
  REQUIRE(::lseek(file.get(), 0, SEEK_SET) == 0);
  return file;
}

}  // namespace

TEST_CASE_METHOD(ReaderFixture, "the bytes of a pipe are read as they arrive, and its end is reported once") {
  auto pipe = test_pipe();
  open(pipe.first.get());
  write_text(pipe.second.get(), "one");
  driver.run_until("the first piece", [&] { return bytes == "one"; });
  write_text(pipe.second.get(), "two");
  driver.run_until("the second piece", [&] { return bytes == "onetwo"; });
  CHECK(ends == 0);
  pipe.second.reset();
  driver.run_until("the end", [&] { return ends == 1; });
  driver.run_ready();
  CHECK(ends == 1);
}

TEST_CASE_METHOD(ReaderFixture, "a regular file is read to its end") {
  const auto file = file_with("from a file\n");
  open(file.get());
  driver.run_until("the end", [&] { return ends == 1; });
  CHECK(bytes == "from a file\n");
}

TEST_CASE_METHOD(ReaderFixture, "/dev/null ends at once") {
  const ddl::UniqueFd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  open(null.get());
  driver.run_until("the end", [&] { return ends == 1; });
  CHECK(bytes.empty());
}

TEST_CASE_METHOD(ReaderFixture, "an unreadable descriptor counts as ended") {
  const ddl::UniqueFd directory(::open("/", O_RDONLY | O_CLOEXEC));
  open(directory.get());
  driver.run_until("the end", [&] { return ends == 1; });
}

TEST_CASE_METHOD(ReaderFixture, "at most the window is in flight, and every byte arrives in the end") {
  const std::size_t size = StdinReader::kWindow * 3 + 17;
  const auto file = file_with(std::string(size, 'x'));
  open(file.get());
  const auto window = static_cast<std::size_t>(StdinReader::kWindow);
  driver.run_until("a window", [&] { return bytes.size() == window; });
  driver.run_ready();
  CHECK(bytes.size() == window);
  reader->refund(1000);
  driver.run_until("what was refunded", [&] { return bytes.size() == window + 1000; });
  driver.run_ready();
  CHECK(bytes.size() == window + 1000);
  while (ends == 0) {
    const std::size_t had = bytes.size();
    reader->refund(StdinReader::kWindow);
    driver.run_until("more", [&] { return bytes.size() > had || ends == 1; });
  }
  CHECK(bytes.size() == size);
}

TEST_CASE_METHOD(ReaderFixture, "a stopped reader reads nothing more: the rest is for the next reader") {
  const auto pipe = test_pipe();
  open(pipe.first.get());
  write_text(pipe.second.get(), "mine");
  driver.run_until("the bytes", [&] { return bytes == "mine"; });
  reader->stop();
  write_text(pipe.second.get(), "yours");
  reader->refund(4);
  reader->recheck_terminal();
  driver.run_ready();
  CHECK(bytes == "mine");
  CHECK(ends == 0);
  REQUIRE(ddl::set_nonblocking(pipe.first.get(), true));
  CHECK(read_available(pipe.first.get()) == "yours");
}

TEST_CASE_METHOD(ReaderFixture, "a handler may stop the reader") {
  const auto pipe = test_pipe();
  int calls = 0;
  reader.emplace(loop, pipe.first.get(),
                 StdinReader::Handlers{[&](std::string&&) {
                                         ++calls;
                                         reader->stop();
                                         driver.check();
                                       },
                                       [] {}});
  write_text(pipe.second.get(), "x");
  driver.run_until("the call", [&] { return calls == 1; });
  write_text(pipe.second.get(), "y");
  driver.run_ready();
  CHECK(calls == 1);
}

// The open file description is shared with the process that started ddlrun: a shell's terminal, or the next command
// of a script.
TEST_CASE_METHOD(ReaderFixture, "standard input is left blocking") {
  const auto pipe = test_pipe();
  open(pipe.first.get());
  write_text(pipe.second.get(), "x");
  driver.run_until("the byte", [&] { return bytes == "x"; });
  CHECK_FALSE(is_nonblocking(pipe.first.get()));
  reader.reset();
  CHECK_FALSE(is_nonblocking(pipe.first.get()));
}
