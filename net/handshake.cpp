#include "net/handshake.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <string_view>
#include <utility>

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "base/bytes.h"
#include "net/tcp.h"

namespace ddl::net {
namespace {

using Bytes = std::span<const std::byte>;
using Mac = std::array<std::byte, kMacBytes>;

// The last character is the version of the conversation.
constexpr std::string_view kMagic = "ddlauth1";

Bytes bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

/// All parts but the label have fixed sizes, and no label begins with another, so the parts cannot be confused.
Mac mac_of(const JobKey& key, std::string_view label, std::initializer_list<Bytes> parts) {
  std::vector<std::byte> message(bytes_of(label).begin(), bytes_of(label).end());
  for (const Bytes part : parts) message.insert(message.end(), part.begin(), part.end());
  Mac mac{};
  unsigned int size = 0;
  const void* made = ::HMAC(EVP_sha256(), key.bytes().data(), static_cast<int>(key.bytes().size()),
                            reinterpret_cast<const unsigned char*>(message.data()), message.size(),
                            reinterpret_cast<unsigned char*>(mac.data()), &size);
  // It fails only without memory or without SHA-256; then there is nothing to compare with.
  DDL_CHECK(made != nullptr && size == kMacBytes, "HMAC-SHA256");
  return mac;
}

void append(std::vector<std::byte>& out, Bytes bytes) {
  const std::size_t end = out.size();
  out.resize(end + bytes.size());
  std::copy(bytes.begin(), bytes.end(), out.begin() + static_cast<std::ptrdiff_t>(end));
}

template <std::size_t kSize>
void copy(std::array<std::byte, kSize>& to, Bytes from) {
  DDL_CHECK(from.size() == kSize, std::to_string(from.size()));
  std::copy(from.begin(), from.end(), to.begin());
}

}  // namespace

Result<Handshake> Handshake::begin(Role role, const JobKey& key, const Introduction& own) {
  HandshakeNonce nonce{};
  DDL_TRY(fill_random(nonce));
  return Handshake(role, key, own, nonce);
}

Handshake::Handshake(Role role, const JobKey& key, const Introduction& own, const HandshakeNonce& nonce)
    : role_(role),
      key_(&key),
      own_(own),
      expecting_(role == Role::kAcceptor ? Expecting::kOpening : Expecting::kChallenge) {
  if (role == Role::kConnector) {
    connector_nonce_ = nonce;
    append(output_, bytes_of(kMagic));
    append(output_, connector_nonce_);
  } else {
    acceptor_nonce_ = nonce;
  }
}

std::vector<std::byte> Handshake::take_output() { return std::exchange(output_, {}); }

std::size_t Handshake::wanted() const {
  std::size_t size = 0;
  switch (expecting_) {
    case Expecting::kNothing: return 0;
    case Expecting::kOpening: size = kMagic.size() + kNonceBytes; break;
    case Expecting::kChallenge: size = kNonceBytes + kMacBytes; break;
    case Expecting::kProof:
    case Expecting::kAcceptance: size = kIntroductionBytes + kMacBytes; break;
  }
  return size - input_.size();
}

Status Handshake::feed(std::span<const std::byte> bytes) {
  if (state_ == State::kFailed) return fail(ErrorCode::kProtocol, "the handshake has failed already");
  DDL_CHECK(bytes.size() <= wanted(), std::to_string(bytes.size()));
  append(input_, bytes);
  // A peer with another protocol is recognised by its first bytes, not after a deadline.
  if (expecting_ == Expecting::kOpening) {
    const std::size_t begun = std::min(input_.size(), kMagic.size());
    if (std::memcmp(input_.data(), kMagic.data(), begun) != 0) {
      return broken(ErrorCode::kProtocol, "the caller does not speak libddl's handshake");
    }
  }
  if (wanted() > 0) return {};
  Status taken = take_message();
  input_.clear();
  return taken;
}

Status Handshake::take_message() {
  switch (expecting_) {
    case Expecting::kNothing: return {};
    case Expecting::kOpening: return take_opening();
    case Expecting::kChallenge: return take_challenge();
    case Expecting::kProof: return take_proof();
    case Expecting::kAcceptance: return take_acceptance();
  }
  return {};
}

Status Handshake::take_opening() {
  copy(connector_nonce_, Bytes(input_).subspan(kMagic.size()));
  append(output_, acceptor_nonce_);
  append(output_, mac_of(*key_, "acceptor", {connector_nonce_, acceptor_nonce_}));
  expecting_ = Expecting::kProof;
  return {};
}

Status Handshake::take_challenge() {
  copy(acceptor_nonce_, Bytes(input_).first(kNonceBytes));
  const Mac wanted_mac = mac_of(*key_, "acceptor", {connector_nonce_, acceptor_nonce_});
  if (!is_same_secret(wanted_mac, Bytes(input_).subspan(kNonceBytes))) {
    return broken(ErrorCode::kPermissionDenied, "the listener does not know the job's key");
  }
  append(output_, own_);
  append(output_, mac_of(*key_, "connector", {connector_nonce_, acceptor_nonce_, own_}));
  expecting_ = Expecting::kAcceptance;
  return {};
}

Status Handshake::take_proof() {
  copy(peer_, Bytes(input_).first(kIntroductionBytes));
  const Mac wanted_mac = mac_of(*key_, "connector", {connector_nonce_, acceptor_nonce_, peer_});
  if (!is_same_secret(wanted_mac, Bytes(input_).subspan(kIntroductionBytes))) {
    return broken(ErrorCode::kPermissionDenied, "the caller does not know the job's key");
  }
  expecting_ = Expecting::kNothing;
  state_ = State::kAsked;
  return {};
}

Status Handshake::take_acceptance() {
  copy(peer_, Bytes(input_).first(kIntroductionBytes));
  const Mac wanted_mac = mac_of(*key_, "accepted", {connector_nonce_, acceptor_nonce_, own_, peer_});
  if (!is_same_secret(wanted_mac, Bytes(input_).subspan(kIntroductionBytes))) {
    return broken(ErrorCode::kPermissionDenied, "the listener's acceptance is forged");
  }
  expecting_ = Expecting::kNothing;
  state_ = State::kDone;
  return {};
}

void Handshake::accept() {
  DDL_CHECK(role_ == Role::kAcceptor && state_ == State::kAsked, std::to_string(static_cast<int>(state_)));
  append(output_, own_);
  append(output_, mac_of(*key_, "accepted", {connector_nonce_, acceptor_nonce_, peer_, own_}));
  state_ = State::kDone;
}

Status Handshake::broken(ErrorCode code, std::string why) {
  state_ = State::kFailed;
  expecting_ = Expecting::kNothing;
  peer_ = {};
  return fail(code, std::move(why));
}

namespace {

bool would_block(int error) { return error == EAGAIN || error == EWOULDBLOCK; }

}  // namespace

Result<HandshakeSocket> HandshakeSocket::connect(const SocketAddress& address, const JobKey& key,
                                                 const Introduction& own, Deadline deadline) {
  DDL_ASSIGN(handshake, Handshake::begin(Handshake::Role::kConnector, key, own));
  DDL_ASSIGN(socket, begin_connect(address));
  return HandshakeSocket(std::move(socket), std::move(handshake), deadline, true);
}

Result<HandshakeSocket> HandshakeSocket::over(UniqueFd socket, const JobKey& key, const Introduction& own,
                                              Deadline deadline) {
  DDL_ASSIGN(handshake, Handshake::begin(Handshake::Role::kConnector, key, own));
  return HandshakeSocket(std::move(socket), std::move(handshake), deadline, true);
}

Result<HandshakeSocket> HandshakeSocket::answer(UniqueFd socket, const JobKey& key, const Introduction& own,
                                                Deadline deadline) {
  DDL_ASSIGN(handshake, Handshake::begin(Handshake::Role::kAcceptor, key, own));
  return HandshakeSocket(std::move(socket), std::move(handshake), deadline, false);
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
    DDL_ASSIGN(received, receive_some());
    if (!received) return handshake_.state();
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
