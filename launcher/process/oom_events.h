// Whether the kernel's out-of-memory handler has killed something in this process's memory cgroup.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/error.h"

namespace ddl::launcher {

/// The memory cgroup of this process and the counter of its OOM kills, cgroup v2 or v1.
class OomEvents {
 public:
  /// Finds the counter and remembers its value. An object is always made: without a counter it says why.
  static OomEvents watch();

  /// One sentence about a SIGKILL that ddlrun did not send: what the counter says since watch().
  std::string explain_kill() const;

 private:
  std::string file_;     // memory.events (v2) or memory.oom_control (v1)
  std::string cgroup_;   // its path, for people
  std::string problem_;  // why there is no counter
  std::optional<std::int64_t> before_;
};

/// What a process sees of its cgroup's path under a mount of this root ("/" or "/docker/a1"). Pure.
std::string below_mount_root(const std::string& path, const std::string& root);

/// The value behind "oom_kill" in the text of memory.events or memory.oom_control.
std::optional<std::int64_t> parse_oom_kills(const std::string& text);

}  // namespace ddl::launcher
