#include "launcher/node/port_watch.h"

#include <netinet/in.h>
#include <sys/fsuid.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launcher/node/held_ports.h"
#include "launcher/port_server.h"
#include "support/skip.h"

using namespace ddl;
using namespace ddl::launcher;
using namespace ddl::launcher::test;
using Catch::Matchers::Contains;

namespace {

/// A watch on a held port, and what it has said.
struct WatchedPort {
  WatchedPort() { watch.start({port}); }

  HeldPorts held;
  int port = held.hold(1).at(0);
  std::vector<std::string> said;
  EventLoop loop;
  std::vector<int> served;
  PortWatch watch{loop, [this](const std::string& how) { said.push_back(how); },
                  [this](int one) { served.push_back(one); }};
};

void close_all_but(int one, int other) {
  constexpr int kMaxInTest = 256;
  for (int fd = 3; fd < kMaxInTest; ++fd)
    if (fd != one && fd != other) ::close(fd);
}

/// A process below this one that has a server on the port while this object lives.
class ProcessWithServer {
 public:
  /// generations: 1 is a child, 2 a grandchild.
  ProcessWithServer(int port, int family, int generations) {
    auto ready = make_pipe();
    auto until = make_pipe();
    REQUIRE((ready && until));
    const pid_t parent = ::fork();
    REQUIRE(parent >= 0);
    if (parent == 0) {
      close_all_but(ready->second.get(), until->first.get());  // sockets of this process are not its own
      while (--generations > 0) {
        const pid_t child = ::fork();
        if (child != 0) ::_exit(::waitpid(child, nullptr, 0) == child ? 0 : 1);
      }
      const UniqueFd server = server_at(port, true, family);
      char byte = server ? 'y' : 'n';
      (void)!::write(ready->second.get(), &byte, 1);
      ::_exit(static_cast<int>(::read(until->first.get(), &byte, 1)));
    }
    pid_ = parent;
    until_ = std::move(until->second);
    char listens = 'n';
    REQUIRE(::read(ready->first.get(), &listens, 1) == 1);
    REQUIRE(listens == 'y');
  }
  ~ProcessWithServer() {
    until_.reset();
    ::waitpid(pid_, nullptr, 0);
  }
  ProcessWithServer(const ProcessWithServer&) = delete;
  ProcessWithServer& operator=(const ProcessWithServer&) = delete;

 private:
  pid_t pid_ = 0;
  UniqueFd until_;
};

UniqueFd connection_to(int port) {
  UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  REQUIRE(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  return socket;
}

}  // namespace

TEST_CASE("a server of a rank, or of a process below a rank, has its port rightly") {
  for (const int family : {AF_INET, AF_INET6}) {
    if (family == AF_INET6 && !has_ipv6()) continue;
    for (const int generations : {1, 2}) {
      CAPTURE(family, generations);
      WatchedPort port;
      for (int servers = 0; servers < 2; ++servers) {
        const ProcessWithServer server(port.port, family, generations);
        const UniqueFd client = connection_to(port.port);
        port.watch.look();
        port.watch.look();
      }
      CHECK(port.served == std::vector<int>{port.port});
      port.watch.look();
      const ProcessWithServer later(port.port, family, generations);
      port.watch.look();
      CHECK(port.served == std::vector<int>{port.port, port.port});
      CHECK(port.said.empty());
    }
  }
}

TEST_CASE("a listener on a held port that is not of the job is named, once") {
  for (const int family : {AF_INET, AF_INET6}) {
    if (family == AF_INET6 && !has_ipv6()) continue;
    WatchedPort port;
    const UniqueFd server = server_at(port.port, true, family);
    REQUIRE(server);
    port.watch.look();
    port.watch.look();
    REQUIRE(port.said.size() == 1);
    CHECK_THAT(port.said[0], Contains("port " + std::to_string(port.port)) && Contains("your own user"));
  }
}

TEST_CASE("another user who listens on a held port is named by its number") {
  if (::geteuid() != 0) DDL_SKIP("only root makes sockets of another user");
  constexpr uid_t kNobody = 65534;
  WatchedPort port;
  ::setfsuid(kNobody);
  const UniqueFd server = server_at(port.port);
  ::setfsuid(0);
  REQUIRE(server);
  port.watch.look();
  REQUIRE(port.said.size() == 1);
  CHECK_THAT(port.said[0], Contains("port " + std::to_string(port.port)) && Contains("uid 65534"));
}

TEST_CASE("a stranger that took a connection before the job's server listened is found when it does") {
  WatchedPort port;
  UniqueFd server = server_at(port.port);
  REQUIRE(server);
  const UniqueFd client = connection_to(port.port);
  const UniqueFd taken(::accept4(server.get(), nullptr, nullptr, SOCK_CLOEXEC));
  REQUIRE(taken);
  server.reset();
  port.watch.look();
  CHECK(port.said.empty());
  const ProcessWithServer own(port.port, AF_INET, 1);
  port.watch.look();
  CHECK(port.said.size() == 1);
}
