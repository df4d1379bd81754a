// What ssh said when it could not start an agent, as one sentence for a person.
#pragma once

#include <string>
#include <string_view>

#include "launcher/fleet/node_starter.h"

namespace ddl::launcher {

/// What is known about an attempt that has failed.
struct SshAttempt {
  std::string program = "ssh";  ///< what was started: "ssh", or the first word of --launch-agent
  std::string remote_path;      ///< of ddlrun over there
  int wait_status = 0;          ///< as from waitpid(2)
  std::string_view noise;       ///< standard output up to its end
  std::string_view errors;      ///< standard error, or its end
};

/// The reason without the host's name, ssh's own words quoted, and what to do next. Pure.
StartFailure describe_ssh_failure(const SshAttempt& attempt);

}  // namespace ddl::launcher
