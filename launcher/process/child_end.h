// How a child process of ours ended, in words.
#pragma once

#include <sys/types.h>

#include <string>

namespace ddl::launcher {

/// Waits up to a second for a child that is ending, reaps it, and says "was killed by SIGKILL" or
/// "exited with 1"; "stopped answering" if it has not ended.
std::string describe_child_end(pid_t pid);

}  // namespace ddl::launcher
