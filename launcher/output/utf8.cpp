#include "launcher/output/utf8.h"

#include <algorithm>

namespace ddl::launcher {
namespace {

/// What a lead byte promises: how many bytes, and which second byte is allowed (this excludes overlong forms,
/// surrogates and what lies beyond U+10FFFF).
struct Lead {
  std::size_t length = 0;  // 0: no lead byte
  unsigned char second_min = 0x80;
  unsigned char second_max = 0xBF;
};

Lead lead_of(unsigned char byte) {
  if (byte < 0x80) return {1};
  if (byte < 0xC2) return {};
  if (byte < 0xE0) return {2};
  if (byte == 0xE0) return {3, 0xA0, 0xBF};
  if (byte == 0xED) return {3, 0x80, 0x9F};
  if (byte < 0xF0) return {3};
  if (byte == 0xF0) return {4, 0x90, 0xBF};
  if (byte < 0xF4) return {4};
  if (byte == 0xF4) return {4, 0x80, 0x8F};
  return {};
}

/// True if the bytes after the first one are as lead allows, as far as they are there.
bool continues(const Lead& lead, std::string_view text) {
  for (std::size_t i = 1; i < std::min(lead.length, text.size()); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte < (i == 1 ? lead.second_min : 0x80) || byte > (i == 1 ? lead.second_max : 0xBF)) return false;
  }
  return true;
}

}  // namespace

std::size_t incomplete_utf8_tail(std::string_view text) {
  for (std::size_t tail = 1; tail <= std::min<std::size_t>(3, text.size()); ++tail) {
    const std::string_view end = text.substr(text.size() - tail);
    const auto first = static_cast<unsigned char>(end.front());
    if ((first & 0xC0) == 0x80) continue;  // a continuation byte: its lead byte is further left
    const Lead lead = lead_of(first);
    return lead.length > tail && continues(lead, end) ? tail : 0;
  }
  return 0;
}

std::size_t utf8_character_length(std::string_view text) {
  if (text.empty()) return 0;
  const Lead lead = lead_of(static_cast<unsigned char>(text.front()));
  return lead.length <= text.size() && continues(lead, text) ? lead.length : 0;
}

}  // namespace ddl::launcher
