#include "launcher/pmix/accept_guard.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <ctime>
#include <string>

#include "base/fd.h"
#include "base/shared_library.h"
#include "net/socket_owner.h"

namespace ddl::launcher {
namespace {

/// How long a read of the library's thread waits for a process of the same user that has connected and sends nothing,
/// for example because it was stopped. A connection that has sent a part takes twice this time; PMIx_Init of all other
/// ranks waits meanwhile. On a node with hundreds of processes for each CPU a rank may need seconds between connecting
/// and sending.
constexpr timeval kMaxSilence{4, 0};
/// If accept() fails for lack of descriptors or memory, the connection stays in the queue and is tried again after
/// this.
constexpr timespec kShortage{0, 10'000'000};

/// Decided once, before libpmix listens; its thread reads it.
std::atomic<net::SocketLookup> the_lookup{net::SocketLookup::kSockDiag};

/// -1 with EAGAIN: after any other error but ECONNABORTED libpmix 4.2 never listens again, and libpmix 5.0 not even
/// after that.
int accept_own_user(int listener, sockaddr* address, socklen_t* size) {
  UniqueFd connection(::accept4(listener, address, size, SOCK_CLOEXEC));
  if (!connection) {
    if (errno != EAGAIN && errno != ECONNABORTED && errno != EINTR) ::nanosleep(&kShortage, nullptr);
    errno = EAGAIN;
    return -1;
  }
  if (net::user_of_peer(connection.get(), the_lookup) != ::geteuid()) {
    connection.reset();
    errno = EAGAIN;
    return -1;
  }
  // Until the library has read the peer's identity, which it does with blocking reads; then it makes the socket
  // non-blocking.
  ::setsockopt(connection.get(), SOL_SOCKET, SO_RCVTIMEO, &kMaxSilence, sizeof kMaxSilence);
  return connection.release();
}

/// After kMaxSilence a read of a blocking socket ends with EAGAIN, which libpmix 4.2 repeats once and libpmix 5.0
/// without end.
bool has_fallen_silent(int socket) {
  if (errno != EAGAIN) return false;
  const int flags = ::fcntl(socket, F_GETFL);
  errno = EAGAIN;
  return flags >= 0 && (flags & O_NONBLOCK) == 0;
}

ssize_t receive_or_give_up(int socket, void* data, std::size_t size, int flags) {
  const ssize_t got = ::recvfrom(socket, data, size, flags, nullptr, nullptr);
  if (got < 0 && (flags & MSG_DONTWAIT) == 0 && has_fallen_silent(socket)) errno = ETIMEDOUT;
  return got;
}

#ifdef DDL_STATIC_PMIX
constexpr bool kCallsOwnNames = true;
#else
constexpr bool kCallsOwnNames = false;
#endif

/// The functions that libpmix calls are this program's.
Status check_functions() {
  // A part of this program is not exported by it.
  if (::dlsym(RTLD_DEFAULT, "PMIx_server_init") == nullptr) {
    if (kCallsOwnNames) return {};
    return fail(
        ErrorCode::kUnavailable,
        "other users of this node could disturb the PMIx server, which is a part of this program; set "
        "DDL_PMIX_CLIENT to a shared libpmix when you build with a static one");
  }
  for (const char* const name : {"accept", "recv"}) {
    if (is_in_this_program(::dlsym(RTLD_DEFAULT, name))) continue;
    return fail(ErrorCode::kUnavailable,
                "other processes of this node could disturb the PMIx server: libraries do not call this "
                "program's own " +
                    std::string(name) + "(); build it with this symbol exported");
  }
  return {};
}

}  // namespace

Status check_accept_guard() {
  DDL_TRY(check_functions());
  const auto lookup = net::find_socket_lookup();
  if (!lookup)
    return fail(Error(lookup.error()).during("other users of this node could connect to the PMIx server"));
  the_lookup = *lookup;
  return {};
}

}  // namespace ddl::launcher

/// See accept_guard.h. Not inlined: it checks the address of its caller.
extern "C" __attribute__((visibility("default"), noinline)) int accept(int listener, sockaddr* address,
                                                                       socklen_t* size) {
  return ddl::is_in_this_program(__builtin_return_address(0))
             ? ::accept4(listener, address, size, 0)
             : ddl::launcher::accept_own_user(listener, address, size);
}

/// See accept_guard.h.
extern "C" __attribute__((visibility("default"), noinline)) ssize_t recv(int socket, void* data,
                                                                         std::size_t size, int flags) {
  return ddl::is_in_this_program(__builtin_return_address(0))
             ? ::recvfrom(socket, data, size, flags, nullptr, nullptr)
             : ddl::launcher::receive_or_give_up(socket, data, size, flags);
}

#ifdef DDL_STATIC_PMIX
/// What a static libpmix calls in place of accept() and recv(): it cannot be told from the program by its address.
extern "C" int ddl_pmix_accept(int listener, sockaddr* address, socklen_t* size) {
  return ddl::launcher::accept_own_user(listener, address, size);
}

extern "C" ssize_t ddl_pmix_recv(int socket, void* data, std::size_t size, int flags) {
  return ddl::launcher::receive_or_give_up(socket, data, size, flags);
}
#endif
