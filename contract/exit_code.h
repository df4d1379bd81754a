// The exit codes of ddlrun, complete. docs/reference/exit-codes.md lists the same.
#pragma once

namespace ddl::contract {

/// What ddlrun itself returns. A rank's own exit code is passed through unchanged, and 128+N stands for signal N,
/// so a program that exits with one of these numbers is told apart by the report and by `--json`.
enum ExitCode : int {
  kSuccess = 0,
  kUsageError = 2,       ///< bad option, value or combination; nothing was started
  kInternalError = 120,  ///< a broken invariant of ddlrun
  kLostHost = 121,       ///< an agent or its spawner died, or the link to it broke
  kStartFailure = 122,   ///< the job could not be started (agent, PMIx server, resources)
  kOutputLost = 123,     ///< all went well, but what was to be written could not be
  kTimeout = 124,        ///< --timeout ran out, as timeout(1) has it
  kNotExecutable = 126,  ///< the command was found but cannot be executed, as in a shell
  kNotFound = 127,       ///< the command or the working directory does not exist, as in a shell
  kSignalBase = 128,     ///< 128+N: the first failure was death by signal N, or ddlrun was told to end by it
};

}  // namespace ddl::contract
