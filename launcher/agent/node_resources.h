// What of this machine a job may run out of: memory, limits, room for files.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace ddl::launcher {

struct NodeMemory {
  std::int64_t total_bytes = 0;      ///< 0: unknown
  std::int64_t available_bytes = 0;  ///< 0: unknown
};

/// From the text of /proc/meminfo (proc(5)). Pure.
NodeMemory parse_meminfo(std::string_view text);
NodeMemory node_memory();

/// The soft limit of setrlimit(2)'s resource; -1: none.
std::int64_t soft_limit(int resource);

/// Bytes that this user may still write in the file system of a directory; -1: that cannot be read.
std::int64_t free_bytes(const std::string& directory);

/// TMPDIR if it is absolute, else /tmp: where agents keep their files.
std::string tmp_directory();

/// The path of the libddl in the library folder beside this program, links resolved; "": there is none.
std::string installed_libddl();

}  // namespace ddl::launcher
