#include "net/abstract_socket.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <unordered_set>

#include "base/text.h"

namespace ddl::net {
namespace {

struct AbstractAddress {
  sockaddr_un address{};
  socklen_t length = 0;

  /// A leading zero byte makes it abstract; what follows is not zero-terminated, so the length counts (unix(7)).
  static Result<AbstractAddress> of(std::string_view name) {
    AbstractAddress one;
    if (name.size() >= sizeof one.address.sun_path)
      return fail(ErrorCode::kInvalidArgument, "too long for the name of a socket: " + std::string(name));
    one.address.sun_family = AF_UNIX;
    std::memcpy(one.address.sun_path + 1, name.data(), name.size());
    one.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
    return one;
  }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address); }
};

UniqueFd unix_stream_socket() {
  return UniqueFd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

}  // namespace

Result<UniqueFd> listen_abstract(const std::string& name, int backlog) {
  DDL_ASSIGN(address, AbstractAddress::of(name));
  UniqueFd socket = unix_stream_socket();
  if (!socket) return fail_errno("socket");
  if (::bind(socket.get(), address.get(), address.length) != 0) return fail_errno("bind of @" + name);
  if (::listen(socket.get(), backlog) != 0) return fail_errno("listen at @" + name);
  return socket;
}

Result<UniqueFd> connect_abstract(const std::string& name) {
  DDL_ASSIGN(address, AbstractAddress::of(name));
  UniqueFd socket = unix_stream_socket();
  if (!socket) return fail_errno("socket");
  // The connection of a Unix socket is complete at once, or not possible.
  if (::connect(socket.get(), address.get(), address.length) != 0) {
    if (errno == EAGAIN) return fail(ErrorCode::kUnavailable, "too many connections wait at @" + name);
    return fail_errno("connect to @" + name);
  }
  return socket;
}

std::optional<PeerProcess> peer_of(int socket) {
  ucred peer{};
  socklen_t length = sizeof peer;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0) return std::nullopt;
  return PeerProcess{peer.uid, peer.pid};
}

Result<std::string> read_proc_net_unix() {
  constexpr std::size_t kMaxText = std::size_t{16} << 20;
  return read_file("/proc/self/net/unix", kMaxText);
}

std::vector<std::string_view> abstract_names(std::string_view proc_net_unix) {
  std::vector<std::string_view> names;
  std::unordered_set<std::string_view> seen;
  for (const std::string_view line : split(proc_net_unix, '\n')) {
    const std::size_t at = line.rfind(" @");  // of the path, which is the last column
    if (at == std::string_view::npos) continue;
    const std::string_view name = line.substr(at + 2);
    if (seen.insert(name).second) names.push_back(name);
  }
  return names;
}

bool is_name_part(std::string_view text) {
  constexpr std::size_t kMaxLength = 63;
  return !text.empty() && text.size() <= kMaxLength && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '.' || c == '_';
  });
}

}  // namespace ddl::net
