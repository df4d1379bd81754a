// Agents on this machine: forked, linked by a socket pair.
#pragma once

#include <memory>

#include "launcher/fleet/node_starter.h"

namespace ddl::launcher {

/// The calling process must have one thread when start() is called, and becomes a subreaper: if agent and spawner die
/// together, what is left of the job comes to it, and AgentProcess::clean_up ends that.
std::unique_ptr<NodeStarter> make_local_starter();

}  // namespace ddl::launcher
