#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <span>

#include "contract/version.h"
#include "launcher/fleet/rendezvous.h"
#include "launcher/node/agent.h"
#include "launcher/node/node_probe.h"
#include "launcher/process/session_directory.h"
#include "launcher/protocol/codec.h"
#include "launcher/protocol/link.h"
#include "launcher/scheduler/scheduler.h"

namespace ddl::launcher {
namespace {

// Moves a standard stream to another descriptor, so that nothing that prints can write into the link.
UniqueFd take_over(int standard_fd) {
  UniqueFd fd(::fcntl(standard_fd, F_DUPFD_CLOEXEC, 3));
  const UniqueFd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  if (null) ::dup2(null.get(), standard_fd);
  return fd;
}

}  // namespace

int run_joining_agent(const std::string& nonce) {
  constexpr std::chrono::seconds kConnectPatience{20};
  const Environment own = process_environment();
  const std::string given = scheduler_here(own).node_name(own);
  const std::string name = given.empty() ? hostname() : given;
  const auto give_up = [&name](std::string_view why) {
    std::fprintf(stderr, "ddlrun agent on %s: %s\n", name.c_str(), std::string(why).c_str());
    return 1;
  };
  auto join = read_join(take_over(STDIN_FILENO).get());
  if (!join) return give_up(join.error().message());
  // The key is on a page that the spawner and the ranks, forked from here, read as zeroes.
  const auto key = net::JobKey::from_hex(join->key);
  net::wipe(std::as_writable_bytes(std::span(join->key)));
  if (!key) return give_up(key.error().message());
  auto ends = make_socket_pair(SOCK_STREAM);
  if (!ends) return give_up(ends.error().message());
  const auto directory = new_session_directory_name();
  if (!directory) return give_up(directory.error().message());
  const std::string hello = greeting(contract::kVersion, nonce);
  if (!write_all(ends->first.get(), hello.data(), hello.size())) return 1;
  std::unique_ptr<TlsPump> pump;
  bool has_joined = false;
  const int status = run_agent(*directory, std::move(ends->first), {}, [&] {
    auto socket = connect_to_rendezvous(*join, kConnectPatience);
    auto stream = socket ? net::TlsStream::connected(*std::move(socket), name, net::preshared_key(*key, name))
                         : Result<net::TlsStream>(fail(std::move(socket.error())));
    if (!stream) {
      give_up(stream.error().message());
      return ends->second.reset();  // which ends the agent
    }
    has_joined = true;
    pump = std::make_unique<TlsPump>();
    pump->carry(*std::move(stream), std::move(ends->second), [&give_up] {
      give_up(
          "the first node of the job refused the connection: it does not expect this node, or the keys "
          "differ");
    });
  });
  pump.reset();  // delivers the last bytes
  return has_joined ? status : 1;
}

int run_remote_agent(const std::string& nonce) {
  UniqueFd read = take_over(STDIN_FILENO);
  UniqueFd write = take_over(STDOUT_FILENO);
  const auto directory = new_session_directory_name();
  if (!read || !write || !directory) return 1;
  const std::string hello = greeting(contract::kVersion, nonce);
  if (!write_all(write.get(), hello.data(), hello.size())) return 1;
  return run_agent(*directory, std::move(read), std::move(write));
}

}  // namespace ddl::launcher
