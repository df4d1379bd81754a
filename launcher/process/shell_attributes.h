// What ranks on all hosts get from the shell in which ddlrun was called, beside its environment and its directory: the
// mask of new files, soft limits of resources, and whether ^C is ignored.
#pragma once

#include <sys/resource.h>

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace ddl::launcher {

/// Limits of resources by their names in limits.conf(5): "core", "fsize", "nofile", "stack"; in bytes, but for nofile.
/// kUnlimited: none. Not those by which a host protects itself from its users, such as memlock, nproc and as: a login
/// host's would be wrong for a compute node.
using ResourceLimits = std::map<std::string, std::int64_t>;
inline constexpr std::int64_t kUnlimited = -1;

/// The default: all as in the process that starts the ranks.
struct ShellAttributes {
  int umask = -1;  ///< -1: as there
  ResourceLimits soft_limits{};
  bool ignores_interrupt = false;  ///< SIGINT, as of a command that a script has put into the background
  bool operator==(const ShellAttributes&) const = default;
};

/// Whether this process has inherited that the signal is ignored, as under nohup and in a shell's background job.
bool is_ignored(int signal);
/// The signals that ask ddlrun to end. SIGINT and SIGHUP are not among them if the caller ignores them, as nohup(1) does.
std::vector<int> ending_signals();

/// Those of this process. While it has one thread: to read the umask is to change it for a moment.
ShellAttributes own_shell_attributes();
ResourceLimits own_hard_limits();

/// For setrlimit(2) in this process: the soft limits, each at most its hard one here, which stays.
std::vector<std::pair<int, rlimit>> settable(const ResourceLimits& soft);

/// "nofile 4096 and not 65536, core 0 and not unlimited": the soft limits that hard limits do not allow, and what ranks
/// have instead; "" if there are none. Pure.
std::string reduced_limits(const ResourceLimits& soft, const ResourceLimits& hard);

/// "umask 0022; soft limits: core 0, fsize unlimited, nofile 1024, stack 8388608". Pure.
std::string shell_attributes_text(const ShellAttributes& shell);

}  // namespace ddl::launcher
