// The memory cgroup that this process is in: its limit, its peak, and whether the kernel's out-of-memory handler has
// killed something in it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"

namespace ddl::launcher {

/// How much memory the processes of a cgroup may use and have used, in bytes. Below 0: not known.
struct MemoryUse {
  std::int64_t limit = -1;  ///< the lowest of the cgroup and of those above it; INT64_MAX: none
  std::int64_t peak = -1;   ///< since the cgroup was made
  std::int64_t oom_kills = -1;
  std::string cgroup;   ///< its path
  std::string unknown;  ///< why there are no numbers, if there are none
  bool operator==(const MemoryUse&) const = default;
};

/// cgroup v2 or v1.
class MemoryCgroup {
 public:
  /// Finds the cgroup and remembers its counter of kills. An object is always made: without a counter it says why.
  /// root: the folder in place of "/", for tests.
  static MemoryCgroup watch(const std::string& root = "");

  /// One sentence about a SIGKILL that ddlrun did not send: what the counter says since watch().
  std::string explain_kill() const;
  /// What the cgroup says now; the kills are those since watch().
  MemoryUse use() const;

 private:
  bool is_v2_ = false;
  std::vector<std::string> folders_;  // of the cgroup, and of those above it up to the mount
  std::string file_;                  // memory.events (v2) or memory.oom_control (v1)
  std::string cgroup_;                // its path, for people
  std::string problem_;               // why there is no counter
  std::optional<std::int64_t> before_;
};

/// What a process sees of its cgroup's path under a mount of this root ("/" or "/docker/a1"). Pure.
std::string below_mount_root(const std::string& path, const std::string& root);

/// The value behind "oom_kill" in the text of memory.events or memory.oom_control.
std::optional<std::int64_t> parse_oom_kills(const std::string& text);

}  // namespace ddl::launcher
