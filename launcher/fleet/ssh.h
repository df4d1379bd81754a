// Agents over ssh, or over any other command that connects to a host's standard streams: the command line, its
// process, and a sentence about why it failed.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "launcher/fleet/node_starter.h"
#include "launcher/job/allocation.h"
#include "launcher/job/job_spec.h"

namespace ddl::launcher {

/// argv of the process that starts an agent on the node and whose standard input and output are its link. Pure.
/// Error: the path of ddlrun cannot be quoted so that sh, csh and fish read it alike.
Result<std::vector<std::string>> ssh_command(const SshSettings& settings, const AllocatedNode& node,
                                             const std::string& nonce);

/// What is known about an ssh that did not start an agent.
struct SshAttempt {
  std::string program = "ssh";  ///< what was started: "ssh", or the first word of --launch-agent
  std::string remote_path;      ///< of ddlrun on the host
  int wait_status = 0;          ///< as from waitpid(2)
  std::string_view noise;       ///< standard output up to its end
  std::string_view errors;      ///< standard error, or its end
};

/// The reason without the host's name, with ssh's own message in parentheses, and what to do next. Pure.
Error describe_ssh_failure(const SshAttempt& attempt);

/// Starts agents over ssh, or by the command of --launch-agent. Each agent's link is the standard input and output
/// of that process. It has a process group of its own, so that ^C does not reach it, and is started without a fork
/// of this process: threads may exist.
std::unique_ptr<NodeStarter> make_ssh_starter(SshSettings settings);

}  // namespace ddl::launcher
