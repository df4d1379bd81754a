#include "base/fd.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <csignal>
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

TEST_CASE("descriptors travel once, with the first byte, though signals cut the message into pieces") {
  auto pair = make_socket_pair(SOCK_STREAM);
  auto pipe = make_pipe();
  REQUIRE((pair && pipe));
  // Without SA_RESTART a handler makes a blocked sendmsg(2) return what it has sent so far.
  struct sigaction interrupt {};
  struct sigaction before {};
  interrupt.sa_handler = [](int) {};
  REQUIRE(::sigaction(SIGUSR1, &interrupt, &before) == 0);

  const std::string sent(std::size_t{4} << 20, 'y');
  // The reader sees a failed sender as missing bytes: Catch2 takes no assertions from other threads.
  std::thread sender([&, fd = pipe->first.get()] {
    const std::array fds{fd};
    (void)send_with_fds(pair->first.get(), bytes_of(sent), fds);
    pair->first.reset();
  });
  std::size_t total = 0;
  std::size_t descriptors_first = 0;
  std::size_t descriptors_later = 0;
  std::vector<std::byte> buffer(30'000);
  while (total < sent.size()) {
    ::pthread_kill(sender.native_handle(), SIGUSR1);
    auto received = receive_with_fds(pair->second.get(), buffer);
    if (!received || received->size == 0) break;
    (total == 0 ? descriptors_first : descriptors_later) += received->fds.size();
    total += received->size;
  }
  sender.join();
  ::sigaction(SIGUSR1, &before, nullptr);
  CHECK(total == sent.size());
  CHECK(descriptors_first == 1);
  CHECK(descriptors_later == 0);
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

TEST_CASE("sending to a closed socket is an error, not a signal") {
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
