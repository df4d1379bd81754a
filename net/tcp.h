// Non-blocking TCP sockets.
#pragma once

#include <chrono>

#include "base/fd.h"
#include "net/address.h"

namespace ddl::net {

/// Unacknowledged data or a silent peer ends a connection after this long (TCP_USER_TIMEOUT, keepalive).
inline constexpr std::chrono::seconds kPeerSilence{10};

/// A listener on exactly this address; port 0 takes a free one.
Result<UniqueFd> listen_tcp(const SocketAddress& address, int backlog);
/// A listener on all addresses of this host, of both families as far as it has them, on a free port.
Result<UniqueFd> listen_tcp_everywhere(int backlog);
/// What a socket is bound to.
Result<SocketAddress> local_address(int socket);
Result<SocketAddress> peer_address(int socket);

/// The next connection, tuned; an empty descriptor if none is pending.
Result<UniqueFd> accept_tcp(int listener);

/// Begins to connect; the socket becomes writable when the connection is made or has failed. An error may also come
/// at once.
Result<UniqueFd> begin_connect(const SocketAddress& address);
/// The result of begin_connect(), once the socket is writable.
Status connect_result(int socket);

/// No delay (small frames go at once), keepalive, and an end after kPeerSilence.
Status tune_stream(int socket);

}  // namespace ddl::net
