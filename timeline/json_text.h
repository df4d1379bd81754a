// JSON that is appended to a text, for files of millions of objects.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace ddl::timeline {

/// In quotes, with escapes where JSON demands them. Bytes that are not UTF-8 become U+FFFD.
void append_quoted(std::string& text, std::string_view value);
void append_number(std::string& text, std::int64_t value);
void append_number(std::string& text, std::uint64_t value);
/// With three decimals; value is finite and less than 10^15.
void append_decimal(std::string& text, double value);
/// Nanoseconds, not negative, as microseconds with three decimals. Perfetto reads such a number as a double, multiplies
/// it by 1000 and omits the fraction, by which some numbers lose a nanosecond, so that events that touch would overlap.
/// Those numbers get a fourth decimal.
void append_microseconds(std::string& text, std::int64_t nanoseconds);

/// An object that is appended member by member: JsonObject(text).add("pid", 3).close(). Keys are written as they are.
class JsonObject {
 public:
  explicit JsonObject(std::string& text) : text_(text) { text_ += '{'; }
  JsonObject& add(std::string_view key, std::string_view value);
  JsonObject& add(std::string_view key, const char* value) { return add(key, std::string_view(value)); }
  JsonObject& add(std::string_view key, std::int64_t value);
  JsonObject& add(std::string_view key, std::uint64_t value);
  JsonObject& add(std::string_view key, bool value);
  JsonObject& add_decimal(std::string_view key, double value);
  JsonObject& add_microseconds(std::string_view key, std::int64_t nanoseconds);
  /// The caller appends the value of this member next.
  void begin_member(std::string_view key);
  void close() { text_ += '}'; }

 private:
  std::string& text_;
  bool is_empty_ = true;
};

}  // namespace ddl::timeline
