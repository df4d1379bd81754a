// The handshake with arbitrary bytes. The first byte selects the role, the second how the rest is split into reads. A
// peer without the key must not get more than the first answer.
#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "net/handshake.h"

namespace {

using ddl::net::Handshake;

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  static const ddl::net::JobKey key = *ddl::net::JobKey::random();
  const auto role = data[0] % 2 == 0 ? Handshake::Role::kAcceptor : Handshake::Role::kConnector;
  const std::size_t read_size = std::size_t{1} + data[1];
  ddl::net::HandshakeNonce nonce{};
  Handshake handshake(role, key, {}, nonce);
  std::span<const std::byte> stream = std::as_bytes(std::span(data + 2, size - 2));
  std::size_t sent = handshake.take_output().size();
  while (!stream.empty() && handshake.wanted() > 0) {
    const auto part = stream.first(std::min({stream.size(), read_size, handshake.wanted()}));
    stream = stream.subspan(part.size());
    const auto fed = handshake.feed(part);
    sent += handshake.take_output().size();
    if (!fed && handshake.state() != Handshake::State::kFailed) std::abort();
    if (!fed) break;
  }
  if (handshake.state() == Handshake::State::kAsked || handshake.state() == Handshake::State::kDone)
    std::abort();
  if (sent > ddl::net::kNonceBytes + ddl::net::kMacBytes) std::abort();
  return 0;
}
