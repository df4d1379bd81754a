// The process that mpirun knows, in front of the one that does the work.
#pragma once

#include <sys/types.h>

#include <csignal>
#include <optional>

#include "base/error.h"

namespace ddl::launcher {

/// Forks. In front, this process passes the signals of the set on to the other and returns its exit code once it has ended. Behind, it
/// returns nullopt, in a session of its own: it lives on if mpirun or its daemon kills the one in front, is told so by SIGTERM, and
/// can end in order what it has started. The set must be blocked. For a process with one thread. Error: fork failed.
Result<std::optional<int>> stand_in_front(const sigset_t& signals);

}  // namespace ddl::launcher
