#include "launcher/process/open_files_limit.h"

#include <string>

namespace ddl::launcher {

rlimit open_files_limit() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  return limit;
}

void raise_open_files_limit() {
  rlimit limit = open_files_limit();
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

Status check_open_files_limit() {
  // What one rank on this machine takes, measured, and rounded up. Below that the libraries fail first, each in its own way.
  constexpr rlim_t kLeast = 32;
  const rlimit limit = open_files_limit();
  if (limit.rlim_cur >= kLeast) return {};
  return fail(ErrorCode::kUnavailable,
              "only " + std::to_string(limit.rlim_cur) + " files may be open (ulimit -n; at most " +
                  std::to_string(limit.rlim_max) + ", ulimit -Hn), and ddlrun needs " +
                  std::to_string(kLeast) + ", and about 6 more for each rank of a node; raise the limit");
}

}  // namespace ddl::launcher
