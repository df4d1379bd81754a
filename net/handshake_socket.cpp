#include "net/handshake_socket.h"

#include <poll.h>
#include <sys/socket.h>

#include <utility>

#include "net/tcp.h"

namespace ddl::net {
namespace {

bool would_block(int error) { return error == EAGAIN || error == EWOULDBLOCK; }

}  // namespace

Result<HandshakeSocket> HandshakeSocket::connect(const SocketAddress& address, const JobKey& key,
                                                 const Introduction& own, Deadline deadline) {
  auto handshake = Handshake::begin(Handshake::Role::kConnector, key, own);
  if (!handshake) return fail(std::move(handshake.error()));
  auto socket = begin_connect(address);
  if (!socket) return fail(std::move(socket.error()));
  return HandshakeSocket(*std::move(socket), *std::move(handshake), deadline, true);
}

Result<HandshakeSocket> HandshakeSocket::answer(UniqueFd socket, const JobKey& key, const Introduction& own,
                                                Deadline deadline) {
  auto handshake = Handshake::begin(Handshake::Role::kAcceptor, key, own);
  if (!handshake) return fail(std::move(handshake.error()));
  return HandshakeSocket(std::move(socket), *std::move(handshake), deadline, false);
}

short HandshakeSocket::events() const {
  if (is_connecting_ || !unsent_.empty()) return POLLOUT;
  return handshake_.wanted() > 0 ? POLLIN : 0;
}

Result<Handshake::State> HandshakeSocket::advance() {
  if (deadline_.has_passed()) return fail(ErrorCode::kTimeout, "no answer in time");
  if (is_connecting_) {
    pollfd entry{socket_.get(), POLLOUT, 0};
    if (retry_eintr([&] { return ::poll(&entry, 1, 0); }) == 0) return handshake_.state();
    DDL_TRY(connect_result(socket_.get()));
    is_connecting_ = false;
  }
  for (;;) {
    DDL_TRY(send_pending());
    if (!unsent_.empty()) return Handshake::State::kTalking;
    if (handshake_.wanted() == 0) return handshake_.state();
    auto received = receive_some();
    if (!received) return fail(std::move(received.error()));
    if (!*received) return handshake_.state();
  }
}

Status HandshakeSocket::send_pending() {
  const auto output = handshake_.take_output();
  unsent_.insert(unsent_.end(), output.begin(), output.end());
  while (!unsent_.empty()) {
    const ssize_t sent =
        retry_eintr([&] { return ::send(socket_.get(), unsent_.data(), unsent_.size(), MSG_NOSIGNAL); });
    if (sent < 0) {
      if (would_block(errno)) return {};
      return fail_errno("send");
    }
    unsent_.erase(unsent_.begin(), unsent_.begin() + sent);
  }
  return {};
}

Result<bool> HandshakeSocket::receive_some() {
  std::array<std::byte, 256> buffer;
  const std::size_t wanted = std::min(buffer.size(), handshake_.wanted());
  const ssize_t got = retry_eintr([&] { return ::recv(socket_.get(), buffer.data(), wanted, 0); });
  if (got < 0) {
    if (would_block(errno)) return false;
    return fail_errno("recv");
  }
  if (got == 0) return fail(ErrorCode::kClosed, "the connection was closed");
  DDL_TRY(handshake_.feed(std::span(buffer).first(static_cast<std::size_t>(got))));
  return true;
}

}  // namespace ddl::net
