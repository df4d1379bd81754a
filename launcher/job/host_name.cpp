#include "launcher/job/host_name.h"

#include <arpa/inet.h>

#include <algorithm>

namespace ddl::launcher {
namespace {

constexpr std::size_t kLongestHostName = 253;
constexpr std::size_t kLongestUserName = 64;

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
  in6_addr address{};
  return ::inet_pton(AF_INET6, std::string(text.substr(0, percent)).c_str(), &address) == 1;
}

}  // namespace

Status check_host_name(std::string_view name) {
  if (name.empty()) return refuse("the name of a host is missing");
  if (name.size() > kLongestHostName) {
    return refuse("the name of a host has at most " + std::to_string(kLongestHostName) +
                  " characters, found " + quoted(name));
  }
  if (name.find(':') != std::string_view::npos) {
    if (is_ipv6_address(name)) return {};
    return refuse(quoted(name) + " is not an IPv6 address");
  }
  if (!consists_of(name, "._-") || name.front() == '-' || name.front() == '.') {
    return refuse("a host is named with letters, digits and \"._-\" and begins with none of \".-\", found " +
                  quoted(name));
  }
  if (std::all_of(name.begin(), name.end(), is_digit)) {
    return refuse(quoted(name) + " is a number, not the name of a host");
  }
  return {};
}

Status check_user_name(std::string_view name) {
  if (name.empty()) return refuse("the name of a user is missing");
  if (name.size() > kLongestUserName || !consists_of(name, "._-+@") || name.front() == '-') {
    return refuse("a user is named with letters, digits and \"._-+@\" and does not begin with \"-\", found " +
                  quoted(name));
  }
  return {};
}

std::string quoted(std::string_view text) {
  constexpr std::size_t kEnough = 60;
  constexpr char kHex[] = "0123456789abcdef";
  std::string result = "\"";
  for (const char c : text.substr(0, kEnough)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte >= 0x7f) {
      result += {'\\', 'x', kHex[byte >> 4], kHex[byte & 15]};
    } else {
      result += c;
    }
  }
  return result + (text.size() > kEnough ? "...\"" : "\"");
}

std::string host_key(std::string_view name) {
  std::string key(name);
  for (char& c : key) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return key;
}

}  // namespace ddl::launcher
