// Fork and exec of one rank.
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <array>
#include <chrono>
#include <optional>

#include "base/unique_fd.h"
#include "launcher/message/message.h"
#include "launcher/spawner/child_spec.h"

namespace ddl::launcher {

/// What a child gets as its descriptors.
struct ChildFds {
  std::array<UniqueFd, 3> standard;
  UniqueFd key;  ///< if the spec says inherits_key
};

/// A process on its way to exec.
struct StartingChild {
  int rank = 0;
  pid_t pid = 0;
  std::chrono::steady_clock::time_point started;
  UniqueFd error_pipe;  ///< at end of file once exec has succeeded; otherwise carries what failed
};

/// Forks; the child redirects, changes directory and execs by itself, so a slow file system does not hold the caller up.
/// Only for a process with one thread. Error: fork failed.
/// The child gets the given limit of open files back.
Result<StartingChild> start_child(const ChildSpec& spec, const ChildFds& fds, const rlimit& open_files);

/// Reads an error pipe that is readable: nullopt means that exec has succeeded.
std::optional<message::ChildFailed> read_start_error(const StartingChild& child);

}  // namespace ddl::launcher
