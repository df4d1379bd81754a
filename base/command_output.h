// Another command, run to its end for what it prints.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/environment.h"
#include "base/error.h"

namespace ddl {

struct CommandOutput {
  int wait_status = 0;  ///< as of wait(2)
  std::string out;
  std::string err;
};

/// "exits with 3: no such file", "was killed by SIGKILL": how a command has failed, with the first line of its standard
/// error. Pure.
std::string how_it_failed(const CommandOutput& output);

/// A stream of a command that is longer than this ends it, with an error: incomplete output is not used.
inline constexpr std::size_t kMaxCommandOutput = std::size_t{16} << 20;

/// Runs argv, whose first word is looked for in PATH, in a process group of its own and with input as its standard
/// input, until it ends; what it has left behind in its group is then killed. environment: nullopt, this process's own.
/// Blocks; the caller's SIGCHLD may not be ignored.
/// Errors: kNotFound or kPermissionDenied, it cannot be started; kTimeout, it has not ended within patience;
/// kProtocol, it prints more than kMaxCommandOutput. After the last two it and its process group have been killed and
/// it is reaped.
Result<CommandOutput> command_output(const std::vector<std::string>& argv, std::string_view input,
                                     std::chrono::milliseconds patience,
                                     const std::optional<Environment>& environment = std::nullopt);

}  // namespace ddl
