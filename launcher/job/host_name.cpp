#include "launcher/job/host_name.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cstddef>

#include "base/bytes.h"
#include "base/text.h"

namespace ddl::launcher {
namespace {

constexpr std::size_t kMaxHostNameLength = 253;
constexpr std::size_t kMaxUserNameLength = 64;

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_alphanumeric(char c) { return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

bool consists_of(std::string_view text, std::string_view others) {
  return std::all_of(text.begin(), text.end(), [others](char c) {
    return is_alphanumeric(c) || others.find(c) != std::string_view::npos;
  });
}

bool is_ipv6_address(std::string_view text) {
  const std::size_t percent = text.find('%');
  if (percent != std::string_view::npos) {
    const std::string_view zone = text.substr(percent + 1);
    if (zone.empty() || !consists_of(zone, "._-")) return false;
  }
  const std::string digits(text.substr(0, percent));
  // inet_pton() reads up to the first zero byte.
  if (digits.find('\0') != std::string::npos) return false;
  in6_addr address{};
  return ::inet_pton(AF_INET6, digits.c_str(), &address) == 1;
}

}  // namespace

Status check_host_name(std::string_view name) {
  if (name.empty()) return refuse("the name of a host is missing");
  if (name.size() > kMaxHostNameLength) {
    return refuse("the name of a host has at most " + std::to_string(kMaxHostNameLength) +
                  " characters, found " + in_double_quotes(name));
  }
  if (name.find(':') != std::string_view::npos) {
    if (is_ipv6_address(name)) return {};
    return refuse(in_double_quotes(name) + " is not an IPv6 address");
  }
  if (!consists_of(name, "._-") || name.front() == '-' || name.front() == '.') {
    return refuse(
        "a host is named with letters, digits and \"._-\" and does not begin with \".\" or \"-\", found " +
        in_double_quotes(name));
  }
  if (std::all_of(name.begin(), name.end(), is_digit)) {
    return refuse(in_double_quotes(name) + " is a number, not the name of a host");
  }
  return {};
}

Status check_user_name(std::string_view name) {
  if (name.empty()) return refuse("the name of a user is missing");
  if (name.size() > kMaxUserNameLength || !consists_of(name, "._-+@") || name.front() == '-') {
    return refuse("a user is named with letters, digits and \"._-+@\" and does not begin with \"-\", found " +
                  in_double_quotes(name));
  }
  return {};
}

std::string in_double_quotes(std::string_view text) {
  constexpr std::size_t kMaxQuoted = 60;
  std::string result = "\"";
  for (const char c : text.substr(0, kMaxQuoted)) {
    const auto byte = static_cast<std::byte>(c);
    if (byte < std::byte{0x20} || byte >= std::byte{0x7f}) {
      result += "\\x" + to_hex({&byte, 1});
    } else {
      result += c;
    }
  }
  return result + (text.size() > kMaxQuoted ? "...\"" : "\"");
}

std::string host_key(std::string_view name) {
  std::string key(name);
  for (char& c : key) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return key;
}

namespace {

struct NumberRange {
  std::size_t first = 0;
  std::size_t last = 0;
  std::size_t width = 0;  // padded with zeros to this
};

// Text, then the numbers of a bracket; the last part of a pattern has no bracket.
struct Part {
  std::string_view text;
  std::vector<NumberRange> ranges;
  bool has_bracket = false;
};

bool is_number(std::string_view text) {
  constexpr std::size_t kMaxDigits = 9;  // fits into a std::size_t of 32 bits
  return !text.empty() && text.size() <= kMaxDigits &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

std::size_t number_of(std::string_view digits) {
  std::size_t number = 0;
  for (const char c : digits) number = 10 * number + (c - '0');
  return number;
}

bool is_padded(std::string_view digits) { return digits.size() > 1 && digits.front() == '0'; }

Result<NumberRange> parse_number_range(std::string_view text) {
  const std::size_t dash = text.find('-');
  const std::string_view first = text.substr(0, dash);
  const std::string_view last = dash == std::string_view::npos ? first : text.substr(dash + 1);
  if (!is_number(first) || !is_number(last)) {
    return refuse("brackets hold numbers and ranges such as [1-3,7], found " + in_double_quotes(text));
  }
  const NumberRange range{number_of(first), number_of(last), is_padded(first) ? first.size() : 0};
  if (range.first > range.last) return refuse("the range " + in_double_quotes(text) + " runs backwards");
  // [1-016] and [001-16] are ambiguous.
  const bool differently = is_padded(first) ? last.size() < first.size() : is_padded(last);
  if (differently || (is_padded(last) && last.size() != first.size())) {
    return refuse("the ends of the range " + in_double_quotes(text) + " have different numbers of digits");
  }
  return range;
}

Result<std::vector<Part>> parse_pattern(std::string_view pattern) {
  std::vector<Part> parts;
  for (;;) {
    const std::size_t open = pattern.find_first_of("[]");
    Part part;
    part.text = pattern.substr(0, open);
    if (open == std::string_view::npos) {
      parts.push_back(part);
      return parts;
    }
    const std::size_t close = pattern.find_first_of("[]", open + 1);
    if (pattern[open] != '[' || close == std::string_view::npos || pattern[close] != ']') {
      return refuse("the brackets do not match");
    }
    part.has_bracket = true;
    for (const std::string_view text : split(pattern.substr(open + 1, close - open - 1), ',')) {
      DDL_ASSIGN(range, parse_number_range(text));
      part.ranges.push_back(range);
    }
    parts.push_back(std::move(part));
    pattern.remove_prefix(close + 1);
  }
}

std::size_t count_of(const Part& part) {
  std::size_t count = part.has_bracket ? 0 : 1;
  for (const NumberRange& range : part.ranges) count += range.last - range.first + 1;
  return count;
}

void append_padded(std::string& text, std::size_t number, std::size_t width) {
  const std::string digits = std::to_string(number);
  if (digits.size() < width) text.append(width - digits.size(), '0');
  text += digits;
}

// Every name of `done`, continued with the part's text and each of its numbers.
std::vector<std::string> continued(const std::vector<std::string>& done, const Part& part) {
  std::vector<std::string> names;
  for (const std::string& name : done) {
    const std::string start = name + std::string(part.text);
    if (!part.has_bracket) names.push_back(start);
    for (const NumberRange& range : part.ranges) {
      for (std::size_t number = range.first; number <= range.last; ++number) {
        names.push_back(start);
        append_padded(names.back(), number, range.width);
      }
    }
  }
  return names;
}

}  // namespace

Result<std::vector<std::string>> expand_brackets(std::string_view pattern, std::size_t max_names) {
  DDL_ASSIGN(parts, parse_pattern(pattern));
  std::size_t total = 1;
  for (const Part& part : parts) {
    // No overflow: a range has nine digits at most, and there are fewer ranges than characters.
    if (count_of(part) > max_names / total) {
      return refuse(in_double_quotes(pattern) + " stands for more than " + std::to_string(max_names) +
                    " hosts, the maximum here");
    }
    total *= count_of(part);
  }
  std::vector<std::string> names{""};
  for (const Part& part : parts) names = continued(names, part);
  return names;
}

}  // namespace ddl::launcher
