// How two processes of a job prove to each other, on a fresh connection, that they know the job's key: first the
// conversation alone (bytes in, bytes out), then the same on a non-blocking TCP socket.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "base/deadline.h"
#include "base/error.h"
#include "base/fd.h"
#include "net/address.h"
#include "net/job_key.h"

namespace ddl::net {

// The conversation alone, without a socket: bytes in, bytes out.
//
//   connector -> acceptor   magic, nonce C
//   acceptor  -> connector  nonce A, HMAC("acceptor", C, A)
//   connector -> acceptor   introduction C, HMAC("connector", C, A, introduction C)
//   acceptor  -> connector  introduction A, HMAC("accepted", C, A, introduction C, introduction A)
//
// All messages have fixed sizes, so no bytes of an unauthenticated peer are taken for a length. HMAC is HMAC-SHA256
// (RFC 2104) with the job's key; the word at its beginning differs for each direction, so no answer can be sent back
// as another, and the nonces make every answer good for one connection. An introduction says who is speaking (the
// user of this class decides how); an unauthenticated peer never sees one. What follows on the connection is neither
// encrypted nor authenticated.

inline constexpr std::size_t kNonceBytes = 32;
inline constexpr std::size_t kMacBytes = 32;
inline constexpr std::size_t kIntroductionBytes = 128;

using HandshakeNonce = std::array<std::byte, kNonceBytes>;
/// Who is speaking, in fixed size.
using Introduction = std::array<std::byte, kIntroductionBytes>;

class Handshake {
 public:
  enum class Role { kConnector, kAcceptor };
  enum class State {
    kTalking,  ///< more bytes are to come from the other side
    kAsked,    ///< acceptor only: the other side has proved itself; accept() it, or hang up
    kDone,     ///< both sides have proved themselves
    kFailed,
  };

  /// key outlives the conversation. An error only if there are no random numbers.
  static Result<Handshake> begin(Role role, const JobKey& key, const Introduction& own);
  /// With a nonce that the caller chose: for tests.
  Handshake(Role role, const JobKey& key, const Introduction& own, const HandshakeNonce& nonce);

  State state() const { return state_; }
  /// What is to be sent now; empty once taken.
  std::vector<std::byte> take_output();
  /// The number of bytes that the next message of the other side still lacks. Never read more: what follows is not
  /// part of the handshake.
  std::size_t wanted() const;
  /// Takes at most wanted() bytes as they arrive. An error, from then on, if the other side does not know the key or
  /// speaks something else.
  Status feed(std::span<const std::byte> bytes);
  /// Acceptor, in kAsked: notifies the connector that it is accepted. Then the state is kDone.
  void accept();

  /// Who the other side is; valid in kAsked and kDone.
  const Introduction& peer() const { return peer_; }

 private:
  enum class Expecting { kNothing, kOpening, kChallenge, kProof, kAcceptance };

  Status take_message();
  Status take_opening();
  Status take_challenge();
  Status take_proof();
  Status take_acceptance();
  Status broken(ErrorCode code, std::string why);

  Role role_;
  const JobKey* key_;
  Introduction own_;
  Introduction peer_{};
  HandshakeNonce connector_nonce_{};
  HandshakeNonce acceptor_nonce_{};
  State state_ = State::kTalking;
  Expecting expecting_;
  std::vector<std::byte> input_;
  std::vector<std::byte> output_;
};

// A handshake on a non-blocking TCP socket: from connecting or accepting until both sides have proved themselves.

/// Owns the socket until release(). To be advanced whenever poll() finds one of events(), or deadline() has passed.
class HandshakeSocket {
 public:
  /// Begins to connect. key outlives the handshake.
  static Result<HandshakeSocket> connect(const SocketAddress& address, const JobKey& key,
                                         const Introduction& own, Deadline deadline);
  /// The same on a stream socket that is connected.
  static Result<HandshakeSocket> over(UniqueFd socket, const JobKey& key, const Introduction& own,
                                      Deadline deadline);
  /// Answers a caller whose connection has been accepted.
  static Result<HandshakeSocket> answer(UniqueFd socket, const JobKey& key, const Introduction& own,
                                        Deadline deadline);

  int fd() const { return socket_.get(); }
  short events() const;
  Deadline deadline() const { return deadline_; }

  /// Does what can be done without waiting. An error ends the attempt: refused, closed, too late, or no proof.
  /// kDone comes only when everything has been sent as well.
  Result<Handshake::State> advance();
  /// In state kAsked: accepts the caller. Call advance() until kDone.
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
