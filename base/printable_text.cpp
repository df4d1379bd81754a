#include "base/printable_text.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "base/text.h"

namespace ddl {
namespace {

/// What a lead byte announces: how many bytes, and which second byte is allowed (this excludes overlong forms,
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

/// True if the bytes after the first one are as lead allows, as far as there are any.
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

namespace {

/// Where the last kMaxLines + 1 lines of text begin, so that a flood costs no more than looking for its end.
std::string_view end_of_flood(std::string_view text) {
  std::size_t size = text.size();
  for (std::size_t newlines = 0; newlines <= StderrTail::kMaxLines; ++newlines) {
    const void* newline = size == 0 ? nullptr : ::memrchr(text.data(), '\n', size);
    if (newline == nullptr) return text;
    size = static_cast<const char*>(newline) - text.data();
  }
  return text.substr(size);
}

bool between(char c, char low, char high) { return c >= low && c <= high; }

/// Length of the escape sequence (ECMA-48) that text, which begins with ESC, begins with; all of text if it is cut
/// off.
std::size_t escape_length(std::string_view text) {
  if (text.size() < 2) return text.size();
  std::size_t at = 2;
  switch (text[1]) {
    case '[':  // CSI: parameters, intermediates, one final byte
      while (at < text.size() && between(text[at], 0x20, 0x3F)) ++at;
      return at < text.size() && between(text[at], 0x40, 0x7E) ? at + 1 : at;
    case ']':
    case 'P':
    case 'X':
    case '^':
    case '_':  // OSC, DCS, SOS, PM, APC: a string that BEL or ESC \ ends
      for (; at < text.size(); ++at) {
        if (text[at] == '\a') return at + 1;
        if (text[at] == '\x1b') return at + 1 < text.size() && text[at + 1] == '\\' ? at + 2 : at;
      }
      return at;
    default:  // intermediates, one final byte: "ESC ( B"
      at = 1;
      while (at < text.size() && between(text[at], 0x20, 0x2F)) ++at;
      return at < text.size() && between(text[at], 0x30, 0x7E) ? at + 1 : at;
  }
}

}  // namespace

std::string printable_line(std::string_view text) {
  std::string shown;
  shown.reserve(text.size());
  char buffer[16];
  while (!text.empty()) {
    const auto first = static_cast<unsigned char>(text.front());
    std::size_t length = utf8_character_length(text);
    if (first == 0x1B) {
      length = escape_length(text);
    } else if ((first < 0x20 && first != '\t') || first == 0x7F) {
      shown += '^';
      shown += static_cast<char>(first ^ 0x40);
    } else if (length == 0) {
      std::snprintf(buffer, sizeof buffer, "\\x%02X", first);
      shown += buffer;
      length = 1;
    } else if (first == 0xC2 && static_cast<unsigned char>(text[1]) < 0xA0) {
      std::snprintf(buffer, sizeof buffer, "<U+00%02X>", static_cast<unsigned char>(text[1]));
      shown += buffer;
    } else {
      shown += text.substr(0, length);
    }
    text.remove_prefix(length);
  }
  return shown;
}

std::string printable_text(std::string_view text) {
  std::string shown;
  for (const std::string_view line : split(text, '\n'))
    shown += (line.data() == text.data() ? "" : "\n") + printable_line(line);
  return shown;
}

void StderrTail::append(std::string_view bytes) {
  const std::string_view end = end_of_flood(bytes);
  if (end.size() < bytes.size()) {
    lines_.clear();
    current_ = {};
    returned_ = false;
    bytes = end.substr(1);  // end begins with the newline before the lines that are kept
  }
  for (;;) {
    const std::size_t newline = bytes.find('\n');
    append_within_line(bytes.substr(0, newline));
    if (newline == std::string_view::npos) return;
    end_line();
    bytes.remove_prefix(newline + 1);
  }
}

void StderrTail::append_within_line(std::string_view bytes) {
  // Only what follows the last "\r" that text follows can be seen in the end.
  while (!bytes.empty()) {
    const std::size_t length = std::min(bytes.find('\r'), bytes.size());
    if (length > 0) {
      if (returned_) current_ = {};
      returned_ = false;
      const std::size_t space = kMaxLineBytes - current_.bytes.size();
      current_.bytes.append(bytes.substr(0, std::min(length, space)));
      current_.is_cut = current_.is_cut || length > space;
    }
    if (length == bytes.size()) return;
    returned_ = true;
    bytes.remove_prefix(length + 1);
  }
}

void StderrTail::end_line() {
  lines_.push_back(std::move(current_));
  if (lines_.size() > kMaxLines) lines_.pop_front();
  current_ = {};
  returned_ = false;
}

std::vector<std::string> StderrTail::lines() const {
  std::vector<std::string> texts;
  const auto add = [&texts](const Line& line) {
    std::string_view bytes = line.bytes;
    if (line.is_cut) bytes.remove_suffix(incomplete_utf8_tail(bytes));
    texts.push_back(printable_line(bytes) + (line.is_cut ? "..." : ""));
  };
  const bool has_unfinished = !current_.bytes.empty();
  const std::size_t skipped = has_unfinished && lines_.size() == kMaxLines ? 1 : 0;
  for (std::size_t i = skipped; i < lines_.size(); ++i) add(lines_[i]);
  if (has_unfinished) add(current_);
  return texts;
}

}  // namespace ddl
