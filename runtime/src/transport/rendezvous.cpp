#include "runtime/src/transport/rendezvous.h"

#include <sys/random.h>

#include "base/text.h"

namespace ddl::runtime {
namespace {

constexpr char kHexDigits[] = "0123456789abcdef";

std::string to_hex(const Nonce& bytes) {
  std::string text;
  for (const std::uint8_t byte : bytes) {
    text += kHexDigits[byte >> 4];
    text += kHexDigits[byte & 15];
  }
  return text;
}

bool from_hex(std::string_view text, Nonce& bytes) {
  if (text.size() != bytes.size() * 2) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto digit = std::string_view(kHexDigits).find(text[i]);
    if (digit == std::string_view::npos) return false;
    bytes[i / 2] = static_cast<std::uint8_t>(i % 2 == 0 ? digit << 4 : bytes[i / 2] | digit);
  }
  return true;
}

Status fill_random(Nonce& bytes) {
  if (retry_eintr([&] { return ::getrandom(bytes.data(), bytes.size(), 0); }) !=
      static_cast<ssize_t>(bytes.size())) {
    return fail_errno("getrandom");
  }
  return {};
}

}  // namespace

Result<Rendezvous> Rendezvous::random() {
  Rendezvous rendezvous;
  Nonce name{};
  DDL_TRY(fill_random(name));
  DDL_TRY(fill_random(rendezvous.nonce));
  rendezvous.socket_name = "ddl-" + to_hex(name);
  return rendezvous;
}

std::string Rendezvous::to_text() const { return socket_name + " " + to_hex(nonce); }

Result<Rendezvous> Rendezvous::parse(std::string_view text) {
  const auto parts = split(text, ' ');
  Rendezvous rendezvous;
  // 107 bytes is what fits into an abstract address after its leading zero (unix(7)).
  if (parts.size() != 2 || parts[0].empty() || parts[0].size() > 107 ||
      !from_hex(parts[1], rendezvous.nonce)) {
    return fail(ErrorCode::kProtocol,
                "the local leader's address is not one: " + std::string(text.substr(0, 200)));
  }
  rendezvous.socket_name = parts[0];
  return rendezvous;
}

}  // namespace ddl::runtime
