// A handshake on a non-blocking TCP socket: from connecting or accepting until both sides have proved themselves.
#pragma once

#include "base/deadline.h"
#include "base/unique_fd.h"
#include "net/address.h"
#include "net/handshake.h"

namespace ddl::net {

/// Owns the socket until release(). To be advanced whenever poll() finds one of events(), or deadline() has passed.
class HandshakeSocket {
 public:
  /// Begins to connect. key outlives the handshake.
  static Result<HandshakeSocket> connect(const SocketAddress& address, const JobKey& key,
                                         const Introduction& own, Deadline deadline);
  /// Answers a caller whose socket has been accepted.
  static Result<HandshakeSocket> answer(UniqueFd socket, const JobKey& key, const Introduction& own,
                                        Deadline deadline);

  int fd() const { return socket_.get(); }
  short events() const;
  Deadline deadline() const { return deadline_; }

  /// Does what can be done without waiting. An error ends the attempt: refused, closed, too late, or no proof.
  /// kDone comes only when everything has been sent as well.
  Result<Handshake::State> advance();
  /// In state kAsked: welcomes the caller. advance() until kDone.
  void accept() { handshake_.accept(); }
  const Introduction& peer() const { return handshake_.peer(); }

  UniqueFd release() { return std::move(socket_); }

 private:
  HandshakeSocket(UniqueFd socket, Handshake handshake, Deadline deadline, bool is_connecting)
      : socket_(std::move(socket)),
        handshake_(std::move(handshake)),
        deadline_(deadline),
        is_connecting_(is_connecting) {}

  Status send_pending();
  /// False when nothing more has arrived.
  Result<bool> receive_some();

  UniqueFd socket_;
  Handshake handshake_;
  Deadline deadline_;
  bool is_connecting_;
  std::vector<std::byte> unsent_;
};

}  // namespace ddl::net
