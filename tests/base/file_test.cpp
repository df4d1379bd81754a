#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "base/fd.h"
#include "support/catch.h"
#include "support/temporary_directory.h"

using ddl::UniqueFd;

namespace {

bool has_open(int fd) { return ::fcntl(fd, F_GETFD) != -1; }

}  // namespace

TEST_CASE("a descriptor is closed once, by its last owner") {
  const int raw = ::dup(STDERR_FILENO);
  {
    UniqueFd first(raw);
    UniqueFd second(std::move(first));
    CHECK_FALSE(first);  // NOLINT(bugprone-use-after-move): what a moved-from owner holds is the point.
    CHECK(second.get() == raw);
    CHECK(has_open(raw));
  }
  CHECK_FALSE(has_open(raw));
}

TEST_CASE("assignment closes what was owned before, release closes nothing") {
  const int old = ::dup(STDERR_FILENO);
  const int next = ::dup(STDERR_FILENO);
  UniqueFd owner(old);
  owner = UniqueFd(next);
  CHECK_FALSE(has_open(old));
  CHECK(has_open(next));
  CHECK(owner.release() == next);
  CHECK_FALSE(owner);
  CHECK(has_open(next));
  ::close(next);
}

TEST_CASE("assigning an owner to itself keeps the descriptor") {
  UniqueFd owner(::dup(STDERR_FILENO));
  UniqueFd& same = owner;
  owner = std::move(same);
  CHECK(has_open(owner.get()));
}

TEST_CASE("set_nonblocking switches on and off and keeps other flags") {
  auto pipe = ddl::make_pipe();
  REQUIRE(pipe);
  const int before = ::fcntl(pipe->first.get(), F_GETFL);
  REQUIRE(ddl::set_nonblocking(pipe->first.get(), true));
  CHECK(::fcntl(pipe->first.get(), F_GETFL) == (before | O_NONBLOCK));
  REQUIRE(ddl::set_nonblocking(pipe->first.get(), false));
  CHECK(::fcntl(pipe->first.get(), F_GETFL) == before);
  CHECK(ddl::set_nonblocking(-1, true).error().system_errno() == EBADF);
}

TEST_CASE("a message socket keeps messages apart") {
  auto pair = ddl::make_socket_pair(SOCK_SEQPACKET);
  REQUIRE(pair);
  REQUIRE(ddl::write_all(pair->first.get(), "one", 3));
  REQUIRE(ddl::write_all(pair->first.get(), "two", 3));
  char buffer[16];
  CHECK(::read(pair->second.get(), buffer, sizeof buffer) == 3);
}

TEST_CASE("write_all reports a descriptor that cannot be written") {
  const UniqueFd read_only(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const auto status = ddl::write_all(read_only.get(), "x", 1);
  REQUIRE_FALSE(status);
  CHECK(status.error().system_errno() == EBADF);
}

TEST_CASE("write_all waits for a descriptor that does not block") {
  auto pipe = ddl::make_pipe();
  REQUIRE(pipe);
  // Like a shell's pipe that another program has made non-blocking; the pipe holds far less.
  REQUIRE(ddl::set_nonblocking(pipe->second.get(), true));
  const std::string text = std::string(1'000'000, 'a') + "end";
  std::string got;
  std::thread reader([&] {
    char buffer[65536];
    for (ssize_t size; (size = ::read(pipe->first.get(), buffer, sizeof buffer)) > 0;)
      got.append(buffer, static_cast<std::size_t>(size));
  });
  const auto status = ddl::write_all(pipe->second.get(), text.data(), text.size());
  pipe->second.reset();
  reader.join();
  CHECK(status);
  CHECK((got == text));  // Catch2 takes minutes to print such a text
}

TEST_CASE("read_file gives all bytes up to the limit, and names the file otherwise") {
  const ddl::test::TemporaryDirectory folder;
  const std::string path = folder / "hosts";
  const std::string text = std::string(40'000, 'a') + '\0' + "end";
  std::ofstream(path, std::ios::binary) << text;

  CHECK(ddl::read_file(path) == text);
  CHECK(ddl::read_file(path, text.size()) == text);
  const auto too_long = ddl::read_file(path, text.size() - 1);
  REQUIRE_FALSE(too_long);
  CHECK(too_long.error().code() == ddl::ErrorCode::kInvalidArgument);
  CHECK_THAT(too_long.error().message(), Catch::Contains(path));

  const auto missing = ddl::read_file(folder / "nobody");
  REQUIRE_FALSE(missing);
  CHECK(missing.error().code() == ddl::ErrorCode::kNotFound);
  CHECK_THAT(missing.error().message(), Catch::Contains("nobody"));

  const auto directory = ddl::read_file(folder / ".");
  REQUIRE_FALSE(directory);
  CHECK(directory.error().system_errno() == EISDIR);
}
