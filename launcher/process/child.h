// Around fork: closing the descriptors that a child inherited, the limit of open files that children get, and a
// sentence about how a child ended.
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <string>

#include "base/error.h"

namespace ddl::launcher {

/// Closes every descriptor above 2 except keep and also_keep (-1: none). Only right after fork.
void close_all_fds_but(int keep, int also_keep = -1);

/// The limit of open files under which this process was started: what its children are to get back.
rlimit open_files_limit();

/// Lifts the soft limit to the hard one: an agent holds three descriptors a rank, whatever the user's shell allows.
void raise_open_files_limit();

/// Error: the limit of open files is too low to start anything; the message names the limit.
Status check_open_files_limit();

/// Waits up to a second for a child that is ending, reaps it, and says "was killed by SIGKILL" or
/// "exited with 1"; "stopped answering" if it has not ended.
std::string describe_child_end(pid_t pid);

}  // namespace ddl::launcher
