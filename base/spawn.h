// Another program, started beside this process's threads or in place of this process.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "base/error.h"

namespace ddl {

/// The descriptors that become a program's standard streams. They stay open here.
struct StandardStreams {
  int in = 0;
  int out = 1;
  int err = 2;
};

/// Starts words[0], looked for in PATH, with these streams, every signal at its default and none blocked, and a process group
/// of its own, so that ^C does not reach it and all of it can be killed. environment: entries NAME=VALUE; nullopt: ours. Does
/// not fork this process: threads may exist. The child is the caller's to wait for. Errors: kNotFound, kPermissionDenied: there
/// is no such program, or it may not be started.
Result<pid_t> spawn(const std::vector<std::string>& words, const StandardStreams& streams,
                    const std::optional<std::vector<std::string>>& environment = std::nullopt);

/// Becomes words[0], looked for in PATH. Returns only if that fails. environment: entries NAME=VALUE; nullopt: ours.
Error become(const std::vector<std::string>& words,
             const std::optional<std::vector<std::string>>& environment = std::nullopt);

}  // namespace ddl
