#include "base/environment.h"

#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace ddl {

Environment process_environment() {
  std::vector<std::string> entries;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) entries.emplace_back(*entry);
  return parse_environment(entries);
}

bool is_variable_name(std::string_view text) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  return !text.empty() && !is_digit(text[0]) && std::all_of(text.begin(), text.end(), [&](char c) {
    return c == '_' || is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  });
}

bool lacks_home(const Environment& own) {
  if (own.contains("HOME")) return false;
  constexpr std::size_t kMaxEntryBytes = 64 << 10;
  std::vector<char> buffer(kMaxEntryBytes);
  passwd entry{};
  passwd* found = nullptr;
  const int error = ::getpwuid_r(::geteuid(), &entry, buffer.data(), buffer.size(), &found);
  // An entry that does not fit is one.
  return found == nullptr && error != ERANGE;
}

std::string value_of(const Environment& environment, const std::string& name) {
  const auto found = environment.find(name);
  return found == environment.end() ? std::string() : found->second;
}

Environment parse_environment(const std::vector<std::string>& entries) {
  Environment environment;
  for (const std::string& entry : entries) {
    const std::size_t equals = entry.find('=');
    if (equals == std::string::npos || equals == 0) continue;
    environment.emplace(entry.substr(0, equals), entry.substr(equals + 1));
  }
  return environment;
}

std::vector<std::string> environment_entries(const Environment& environment) {
  std::vector<std::string> entries;
  for (const auto& [name, value] : environment) entries.push_back(name + "=" + value);
  return entries;
}

}  // namespace ddl
