// Agents on this machine: forked, linked by a socket pair.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>

#include "launcher/fleet/node_starter.h"

namespace ddl::launcher {

/// The main function of the forked process: runs an agent with the name of its session directory, its link to the
/// head, and the head's process. Returns the exit status.
using AgentMain = std::function<int(const std::string& session_directory, UniqueFd link, pid_t head)>;

/// The calling process must have one thread when start() is called, and becomes a subreaper: if agent and spawner
/// die together, the remaining processes of the job become its children, and AgentProcess::clean_up ends them.
std::unique_ptr<NodeStarter> make_local_starter(AgentMain agent_main);

}  // namespace ddl::launcher
