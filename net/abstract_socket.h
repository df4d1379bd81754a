// Unix sockets with abstract names (unix(7)): the kernel removes them however their process ends, and no file is left.
// Any user can take any name, so both sides check who the other is.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/fd.h"

namespace ddl::net {

/// A stream socket, non-blocking, that listens at this name. Error: the name is too long or taken.
Result<UniqueFd> listen_abstract(const std::string& name, int backlog);

/// A stream socket, non-blocking, connected to the one that listens at this name; the other side need not have
/// accepted it. Error kUnavailable: too many connections wait there to be accepted.
Result<UniqueFd> connect_abstract(const std::string& name);

struct PeerProcess {
  uid_t uid = 0;
  pid_t pid = 0;  ///< 0: it has none in this PID namespace
};
/// The process at the other end when it connected or began to listen (SO_PEERCRED), as the kernel states it.
std::optional<PeerProcess> peer_of(int socket);

/// The text of /proc/net/unix of this network namespace.
Result<std::string> read_proc_net_unix();
/// The abstract names in it, without the '@', each once: an accepted connection has the name of its listener. They may
/// hold anything. Pure.
std::vector<std::string_view> abstract_names(std::string_view proc_net_unix);

/// Whether text can be a part of such a name: letters, digits and "-._", as host names have them, at most 63.
bool is_name_part(std::string_view text);

}  // namespace ddl::net
