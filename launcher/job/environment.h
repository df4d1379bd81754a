// environ(7) as a value.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace ddl::launcher {

using Environment = std::map<std::string, std::string>;

/// "" if it is not set.
inline std::string value_of(const Environment& environment, const std::string& name) {
  const auto found = environment.find(name);
  return found == environment.end() ? std::string() : found->second;
}

/// NAME=VALUE each, as programs are given it.
inline std::vector<std::string> environment_entries(const Environment& environment) {
  std::vector<std::string> entries;
  for (const auto& [name, value] : environment) entries.push_back(name + "=" + value);
  return entries;
}

}  // namespace ddl::launcher
