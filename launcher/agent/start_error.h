// Why a rank could not be started, in the words and with the exit code of a shell.
#pragma once

#include <string>

#include "launcher/message/message.h"

namespace ddl::launcher {

/// Fills start_error and exit_code (127 not found, 126 not executable, 122 what is not the command's fault).
void describe_start_failure(const message::ChildFailed& failure, const std::string& command,
                            const std::string& workdir, RankOutcome& outcome);

}  // namespace ddl::launcher
