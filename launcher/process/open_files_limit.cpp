#include "launcher/process/open_files_limit.h"

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

}  // namespace ddl::launcher
