// What srun said when it could not start an agent, as one sentence for a person.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "launcher/fleet/node_starter.h"

namespace ddl::launcher {

/// What is known about an attempt that has failed.
struct SrunAttempt {
  std::string path;                ///< of ddlrun over there
  std::optional<int> wait_status;  ///< as from waitpid(2); nullopt: srun goes on
  std::string_view noise;          ///< standard output up to its end
  std::string_view errors;         ///< standard error, or its end
};

/// The reason without the node's name, srun's own words quoted, and what to do next. Pure.
StartFailure describe_srun_failure(const SrunAttempt& attempt);

}  // namespace ddl::launcher
