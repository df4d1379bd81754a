#include "base/bytes.h"

#include <sys/random.h>

#include <vector>

namespace ddl {
namespace {

constexpr std::string_view kDigits = "0123456789abcdef";

}  // namespace

Status fill_random(std::span<std::byte> bytes) {
  // Up to 256 bytes are given at once, as soon as the system has gathered randomness at all (getrandom(2)).
  const auto wanted = static_cast<ssize_t>(bytes.size());
  if (retry_eintr([&] { return ::getrandom(bytes.data(), bytes.size(), 0); }) != wanted)
    return fail_errno("getrandom");
  return {};
}

std::string to_hex(std::span<const std::byte> bytes) {
  std::string text(2 * bytes.size(), '0');
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const auto byte = std::to_integer<unsigned>(bytes[i]);
    text[2 * i] = kDigits[byte >> 4];
    text[2 * i + 1] = kDigits[byte & 15];
  }
  return text;
}

std::string uuid_text(std::span<const std::byte, 16> bytes) {
  std::string text = to_hex(bytes);
  for (const std::size_t at : {20, 16, 12, 8}) text.insert(at, 1, '-');
  return text;
}

bool from_hex(std::string_view text, std::span<std::byte> bytes) {
  if (text.size() != 2 * bytes.size()) return false;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const std::size_t high = kDigits.find(text[2 * i]), low = kDigits.find(text[2 * i + 1]);
    if (high == std::string_view::npos || low == std::string_view::npos) return false;
    bytes[i] = static_cast<std::byte>(high << 4 | low);
  }
  return true;
}

Result<std::string> random_hex(std::size_t count) {
  std::vector<std::byte> bytes(count);
  DDL_TRY(fill_random(bytes));
  return to_hex(bytes);
}

}  // namespace ddl
