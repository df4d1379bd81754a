// The process that starts the ranks of one node, and outlives the agent to kill them if it must.
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <string>

#include "base/fd.h"

namespace ddl::launcher {

struct SpawnerProcess {
  pid_t pid = 0;
  UniqueFd channel;  ///< the agent's end: frames of message/, with descriptors beside Spawn
};

/// Forks the spawner. The calling process must have one thread and be a subreaper. The spawner removes
/// session_directory if the agent dies before it. children_open_files: the limit of open files that children get back.
/// agent_is_watched: the agent's parent is told of its stops by the kernel, so that the spawner need look at it only rarely.
Result<SpawnerProcess> start_spawner(const std::string& session_directory, const rlimit& children_open_files,
                                     bool agent_is_watched = false);

}  // namespace ddl::launcher
