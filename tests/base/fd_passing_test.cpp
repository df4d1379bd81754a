#include "base/fd_passing.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <string_view>
#include <thread>

#include "support/catch.h"

using ddl::make_pipe;
using ddl::make_socket_pair;
using ddl::receive_with_fds;
using ddl::send_with_fds;

namespace {

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

/// The soft limit of open files, put back at the end of the scope.
class OpenFileLimit {
 public:
  explicit OpenFileLimit(rlim_t limit) {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit now{limit, before_.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &now);
  }
  ~OpenFileLimit() { ::setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

bool same_file(int a, int b) {
  struct stat first {};
  struct stat second {};
  return ::fstat(a, &first) == 0 && ::fstat(b, &second) == 0 && first.st_dev == second.st_dev &&
         first.st_ino == second.st_ino;
}

}  // namespace

TEST_CASE("descriptors arrive with the bytes, in order, close-on-exec, and mean the same files") {
  auto pair = make_socket_pair(SOCK_STREAM);
  auto pipe = make_pipe();
  REQUIRE((pair && pipe));
  const std::array fds{pipe->first.get(), pipe->second.get()};
  REQUIRE(send_with_fds(pair->first.get(), bytes_of("hello"), fds));

  std::array<std::byte, 64> buffer;
  const auto received = receive_with_fds(pair->second.get(), buffer);
  REQUIRE(received);
  CHECK(received->size == 5);
  REQUIRE(received->fds.size() == 2);
  CHECK(same_file(received->fds[0].get(), fds[0]));
  CHECK(same_file(received->fds[1].get(), fds[1]));
  for (const ddl::UniqueFd& fd : received->fds) CHECK((::fcntl(fd.get(), F_GETFD) & FD_CLOEXEC) != 0);

  REQUIRE(ddl::write_all(received->fds[1].get(), "x", 1));
  char got = 0;
  CHECK(::read(pipe->first.get(), &got, 1) == 1);
  CHECK(got == 'x');
}

TEST_CASE("bytes alone need no descriptors") {
  auto pair = make_socket_pair(SOCK_STREAM);
  REQUIRE(pair);
  REQUIRE(send_with_fds(pair->first.get(), bytes_of("plain"), {}));
  std::array<std::byte, 64> buffer;
  const auto received = receive_with_fds(pair->second.get(), buffer);
  REQUIRE(received);
  CHECK(received->size == 5);
  CHECK(received->fds.empty());
}

TEST_CASE("as many descriptors as the kernel takes in one message") {
  auto pair = make_socket_pair(SOCK_STREAM);
  REQUIRE(pair);
  const std::vector<int> fds(ddl::kMaxPassedFds, STDERR_FILENO);
  REQUIRE(send_with_fds(pair->first.get(), bytes_of("."), fds));
  std::array<std::byte, 4> buffer;
  const auto received = receive_with_fds(pair->second.get(), buffer);
  REQUIRE(received);
  CHECK(received->fds.size() == ddl::kMaxPassedFds);
}

TEST_CASE(
    "a long message arrives whole though the socket's buffer is short, descriptors with its first byte") {
  auto pair = make_socket_pair(SOCK_STREAM);
  auto pipe = make_pipe();
  REQUIRE((pair && pipe));
  const std::string sent(std::size_t{4} << 20, 'y');
  std::thread sender([&, socket = std::move(pair->first)] {
    const std::array fds{pipe->first.get()};
    // The other thread sees a failure as a missing end: no assertions outside the main thread in Catch2.
    (void)send_with_fds(socket.get(), bytes_of(sent), fds);
  });
  std::size_t total = 0;
  std::size_t descriptors = 0;
  bool first = true;
  bool only_with_first = true;
  std::vector<std::byte> buffer(30'000);
  for (;;) {
    auto received = receive_with_fds(pair->second.get(), buffer);
    if (!received || received->size == 0) break;
    total += received->size;
    descriptors += received->fds.size();
    only_with_first = only_with_first && (first || received->fds.empty());
    first = false;
  }
  sender.join();
  CHECK(total == sent.size());
  CHECK(descriptors == 1);
  CHECK(only_with_first);
}

TEST_CASE("the end of the stream is no bytes and no error") {
  auto pair = make_socket_pair(SOCK_STREAM);
  REQUIRE(pair);
  pair->first.reset();
  std::array<std::byte, 8> buffer;
  const auto received = receive_with_fds(pair->second.get(), buffer);
  REQUIRE(received);
  CHECK(received->size == 0);
}

TEST_CASE("sending to nobody is an error, not a signal") {
  auto pair = make_socket_pair(SOCK_STREAM);
  REQUIRE(pair);
  pair->second.reset();
  const auto status = send_with_fds(pair->first.get(), bytes_of("x"), {});
  REQUIRE_FALSE(status);
  CHECK(status.error().code() == ddl::ErrorCode::kClosed);
}

TEST_CASE("nothing to read on a non-blocking socket is EAGAIN") {
  auto pair = make_socket_pair(SOCK_STREAM);
  REQUIRE(pair);
  REQUIRE(ddl::set_nonblocking(pair->second.get(), true));
  std::array<std::byte, 8> buffer;
  const auto received = receive_with_fds(pair->second.get(), buffer);
  REQUIRE_FALSE(received);
  CHECK(received.error().system_errno() == EAGAIN);
}

TEST_CASE("descriptors that the limit of open files drops are an error that names the limit") {
  auto pair = make_socket_pair(SOCK_STREAM);
  REQUIRE(pair);
  const std::vector<int> fds(20, STDERR_FILENO);
  REQUIRE(send_with_fds(pair->first.get(), bytes_of("x"), fds));
  std::array<std::byte, 8> buffer;
  const ddl::UniqueFd lowest_free(::dup(STDERR_FILENO));
  const OpenFileLimit limit(static_cast<rlim_t>(lowest_free.get()) + 5);
  const auto received = receive_with_fds(pair->second.get(), buffer);
  REQUIRE_FALSE(received);
  CHECK_THAT(received.error().message(), Catch::Contains("ulimit -n"));
}
