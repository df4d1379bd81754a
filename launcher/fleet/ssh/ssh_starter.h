// Agents over ssh, or over any other command that connects to a host's standard streams.
#pragma once

#include <memory>

#include "launcher/fleet/node_starter.h"
#include "launcher/fleet/ssh/ssh_command.h"

namespace ddl::launcher {

/// Each agent's link is the standard input and output of an ssh process of ours. It has a process group of its own, so
/// that ^C does not reach it, and is started without a fork of this process: threads may exist.
std::unique_ptr<NodeStarter> make_ssh_starter(SshSettings settings);

}  // namespace ddl::launcher
