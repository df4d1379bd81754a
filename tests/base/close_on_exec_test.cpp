// Proves by executing a program that no descriptor made by base/ reaches it. The program is this test itself: the
// case tagged [.child] runs only in there and sees what was inherited.
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <vector>

#include "base/fd.h"
#include "base/process.h"
#include "base/text.h"
#include "support/catch.h"

namespace {

constexpr char kExpectedClosed[] = "DDL_TEST_EXPECTED_CLOSED";
constexpr char kExpectedOpen[] = "DDL_TEST_EXPECTED_OPEN";

bool is_open(int fd) { return ::fcntl(fd, F_GETFD) != -1; }

std::vector<int> numbers_in(const char* variable) {
  std::vector<int> numbers;
  const char* text = std::getenv(variable);
  REQUIRE(text != nullptr);
  for (const std::string_view part : ddl::split(text, ',')) {
    const auto number = ddl::parse_integer(part);
    REQUIRE(number);
    numbers.push_back(static_cast<int>(*number));
  }
  return numbers;
}

}  // namespace

TEST_CASE("what an executed program inherits", "[.child]") {
  for (const int fd : numbers_in(kExpectedClosed)) {
    CAPTURE(fd);
    CHECK_FALSE(is_open(fd));
  }
  // Without this the case above could pass because nothing is inherited at all.
  for (const int fd : numbers_in(kExpectedOpen)) {
    CAPTURE(fd);
    CHECK(is_open(fd));
  }
}

TEST_CASE("descriptors made here do not reach an executed program") {
  auto pipe = ddl::make_pipe();
  auto stream = ddl::make_socket_pair(SOCK_STREAM);
  auto messages = ddl::make_socket_pair(SOCK_SEQPACKET);
  auto pidfd = ddl::open_pidfd(::getpid());
  REQUIRE((pipe && stream && messages && pidfd));
  const std::array sent{pipe->first.get()};
  REQUIRE(ddl::send_with_fds(stream->first.get(), std::as_bytes(std::span("x", 1)), sent));
  std::array<std::byte, 8> buffer;
  auto received = ddl::receive_with_fds(stream->second.get(), buffer);
  REQUIRE((received && received->fds.size() == 1));
  const ddl::UniqueFd inherited(::dup(STDERR_FILENO));  // dup(2) clears close-on-exec

  std::vector<std::string> closed;
  for (const ddl::UniqueFd* fd : {&pipe->first, &pipe->second, &stream->first, &stream->second,
                                  &messages->first, &messages->second, &*pidfd, &received->fds[0]}) {
    closed.push_back(std::to_string(fd->get()));
  }
  const std::string expected_closed = std::string(kExpectedClosed) + "=" + ddl::join(closed, ",");
  const std::string expected_open = std::string(kExpectedOpen) + "=" + std::to_string(inherited.get());

  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    const char* argv[] = {"base_test", "what an executed program inherits", nullptr};
    const char* environment[] = {expected_closed.c_str(), expected_open.c_str(), nullptr};
    ::dup2(::open("/dev/null", O_WRONLY), STDOUT_FILENO);
    ::execve("/proc/self/exe", const_cast<char**>(argv), const_cast<char**>(environment));
    ::_exit(127);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 0));
}
