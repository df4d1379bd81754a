// Why a rank could not be started, in the words and with the exit code of a shell.
#pragma once

#include <string>

#include "launcher/message/message.h"

namespace ddl::launcher {

/// What was to be executed. search_path: the PATH of the rank's environment.
struct FailedCommand {
  std::string command;
  std::string workdir;
  std::string search_path;
};

/// Fills start_error and exit_code (127 not found, 126 not executable, 122 what is not the command's fault). Looks at the file
/// to find out what the kernel's errno does not say: a directory, an interpreter that is not there.
void describe_start_failure(const message::ChildFailed& failure, const FailedCommand& command,
                            RankOutcome& outcome);

}  // namespace ddl::launcher
