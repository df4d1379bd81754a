// The command that starts an agent on another host.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "launcher/job/allocation.h"
#include "launcher/job/job_spec.h"

namespace ddl::launcher {

/// How hosts are reached: what the user said about it, and where ddlrun is there.
struct SshSettings {
  std::optional<int> port;                ///< for nodes that have none of their own
  std::string identity_file;              ///< "" or a path
  std::vector<std::string> extra_args;    ///< the user's, before the host's name
  std::vector<std::string> launch_agent;  ///< empty, or the command that replaces ssh; %h is the host
  std::string remote_path;                ///< of ddlrun over there
  double start_timeout_seconds = 30;
};

/// own_path: where this ddlrun is, which is assumed on the other hosts too unless --remote-path says otherwise.
SshSettings ssh_settings(const JobSpec& spec, const std::string& own_path);

/// argv of the process that starts an agent on the node and is its link. Pure.
/// Error: the path of ddlrun cannot be written so that sh, csh and fish read it alike.
Result<std::vector<std::string>> ssh_command(const SshSettings& settings, const AllocatedNode& node,
                                             const std::string& nonce);

}  // namespace ddl::launcher
