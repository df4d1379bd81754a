// Whether a process of this host was stopped by a signal.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

namespace ddl::launcher {

/// True for a process that SIGSTOP or its like keeps from running. False for one that waits or merely does not get a
/// CPU, for one that a debugger holds, and for one that is gone.
bool is_stopped(pid_t pid);

/// The file that says so, and whether this text of it does (proc(5)).
std::string stat_path(pid_t pid);
bool says_stopped(std::string_view stat);

}  // namespace ddl::launcher
