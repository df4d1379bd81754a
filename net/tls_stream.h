// One connection under TLS 1.3, whose two sides prove that they know a key: no certificates, no tickets, no older
// version.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "net/job_key.h"

namespace ddl::net {

using PresharedKey = std::array<std::byte, 32>;

/// A peer's own key, made of the job's and the name that it is known by: a peer with another name has another key.
PresharedKey preshared_key(const JobKey& key, std::string_view identity);

/// A non-blocking socket with an external key (psk_dhe_ke: recorded traffic cannot be decrypted with a key that is
/// learnt later). For one thread, in a process that ignores SIGPIPE. Steps that want to read or write are taken again
/// when the socket can.
class TlsStream {
 public:
  enum class Step { kDone, kWantRead, kWantWrite, kClosed, kFailed };
  /// The key of the peer with this identity; nullopt if it is not expected. Names are at most 256 bytes.
  using FindKey = std::function<std::optional<PresharedKey>(std::string_view identity)>;

  /// The side that has accepted the connection. find_key is called during handshake().
  static Result<TlsStream> accepted(UniqueFd socket, FindKey find_key);
  /// The side that has connected.
  static Result<TlsStream> connected(UniqueFd socket, std::string identity, const PresharedKey& key);

  TlsStream(TlsStream&&) noexcept;
  TlsStream& operator=(TlsStream&&) noexcept;
  ~TlsStream();

  int fd() const;
  /// kDone: both sides have proved that they know the key.
  Step handshake();
  /// The peer's identity; "" until the handshake is done, and on the side that has connected.
  const std::string& peer_identity() const;
  Step read(std::span<char> buffer, std::size_t& got);
  Step write(std::string_view bytes, std::size_t& put);
  /// Announces that nothing more comes, if the socket takes that at once.
  void close_notify();

 private:
  struct State;
  explicit TlsStream(std::unique_ptr<State> state);
  static Result<TlsStream> make(std::unique_ptr<State> state, UniqueFd socket, bool is_server);
  Step step_of(int result);

  std::unique_ptr<State> state_;
};

}  // namespace ddl::net
