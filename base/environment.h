// environ(7) as a value.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace ddl {

using Environment = std::map<std::string, std::string>;

/// This process's own environment. Not while another thread calls setenv(3).
Environment process_environment();

/// Letters, digits and "_", and no digit first: what a shell can set.
bool is_variable_name(std::string_view text);

/// "" if it is not set.
std::string value_of(const Environment& environment, const std::string& name);

/// True for a process without HOME whose user has no entry in passwd(5), as in many containers. libpmix and Open MPI
/// end with SIGSEGV then: they read a home directory from what getpwuid(3) returns, which is null.
bool lacks_home(const Environment& own);
/// The home directory of such a process: as Docker has it.
inline constexpr char kHomeOfUnknownUser[] = "/";

/// From "NAME=VALUE" entries, as in environ(7). Entries without a name or '=' are dropped; of a name that occurs
/// twice the first entry counts.
Environment parse_environment(const std::vector<std::string>& entries);

/// "NAME=VALUE" each, sorted by name, as exec(3) takes them.
std::vector<std::string> environment_entries(const Environment& environment);

}  // namespace ddl
