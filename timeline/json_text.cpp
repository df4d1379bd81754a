#include "timeline/json_text.h"

#include <algorithm>
#include <charconv>
#include <cstdio>

#include <nlohmann/json.hpp>

namespace ddl::timeline {
namespace {

bool is_plain(char c) { return c >= 0x20 && c < 0x7F && c != '"' && c != '\\'; }

template <class Integer>
void append_integer(std::string& text, Integer value) {
  char digits[24];
  const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
  text.append(digits, end);
}

}  // namespace

void append_quoted(std::string& text, std::string_view value) {
  if (std::all_of(value.begin(), value.end(), is_plain)) {
    text += '"';
    text += value;
    text += '"';
    return;
  }
  using Json = nlohmann::json;
  text += Json(value).dump(-1, ' ', false, Json::error_handler_t::replace);
}

void append_number(std::string& text, std::int64_t value) { append_integer(text, value); }
void append_number(std::string& text, std::uint64_t value) { append_integer(text, value); }

void append_decimal(std::string& text, double value) {
  char digits[40];
  const auto end = std::to_chars(digits, digits + sizeof digits, value, std::chars_format::fixed, 3).ptr;
  text.append(digits, end);
}

void append_microseconds(std::string& text, std::int64_t nanoseconds) {
  append_integer(text, nanoseconds / 1000);
  const auto rest = static_cast<int>(nanoseconds % 1000);
  const char decimals[] = {'.', static_cast<char>('0' + rest / 100), static_cast<char>('0' + rest / 10 % 10),
                           static_cast<char>('0' + rest % 10)};
  text.append(decimals, sizeof decimals);
  // From 2^50 on, a double has no room for the fourth decimal.
  constexpr std::int64_t kExact = std::int64_t{1} << 50;
  if (nanoseconds >= kExact) return;
  const double as_read = static_cast<double>(nanoseconds) / 1000.0;
  if (static_cast<std::int64_t>(as_read * 1000.0) != nanoseconds) text += '5';
}

JsonObject& JsonObject::add(std::string_view key, std::string_view value) {
  begin_member(key);
  append_quoted(text_, value);
  return *this;
}

JsonObject& JsonObject::add(std::string_view key, std::int64_t value) {
  begin_member(key);
  append_number(text_, value);
  return *this;
}

JsonObject& JsonObject::add(std::string_view key, std::uint64_t value) {
  begin_member(key);
  append_number(text_, value);
  return *this;
}

JsonObject& JsonObject::add(std::string_view key, bool value) {
  begin_member(key);
  text_ += value ? "true" : "false";
  return *this;
}

JsonObject& JsonObject::add_decimal(std::string_view key, double value) {
  begin_member(key);
  append_decimal(text_, value);
  return *this;
}

JsonObject& JsonObject::add_microseconds(std::string_view key, std::int64_t nanoseconds) {
  begin_member(key);
  append_microseconds(text_, nanoseconds);
  return *this;
}

void JsonObject::begin_member(std::string_view key) {
  if (!is_empty_) text_ += ',';
  is_empty_ = false;
  text_ += '"';
  text_ += key;
  text_ += "\":";
}

}  // namespace ddl::timeline
