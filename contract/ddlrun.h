// The command ddlrun as other processes see it: its exit codes, and the options by which one ddlrun starts another in
// a different role. docs/reference/exit-codes.md lists the same exit codes.
#pragma once

namespace ddl::contract {

/// All that ddlrun itself returns. A rank's own exit code is passed through unchanged, and 128+N stands for signal N,
/// so a program that exits with one of these numbers is distinguished by the report and by `--json`.
enum ExitCode : int {
  kSuccess = 0,
  kUsageError = 2,       ///< bad option, value or combination; nothing was started
  kDrained = 119,        ///< an elastic job was asked to end, and has saved its state for the next one
  kInternalError = 120,  ///< a broken invariant of ddlrun
  kLostHost = 121,       ///< an agent or its spawner died, or the link to it broke
  kStartFailure = 122,   ///< the job could not be started (agent, PMIx server, resources), or lost a port
  kOutputLost = 123,     ///< all went well, but what was to be written could not be
  kTimeout = 124,        ///< --timeout ran out, as timeout(1) has it
  kNotExecutable = 126,  ///< the command was found but cannot be executed, as in a shell
  kNotFound = 127,       ///< the command or the working directory does not exist, as in a shell
  kSignalBase = 128,     ///< 128+N: the first failure was death by signal N, or ddlrun received it
};

/// "ddlrun --agent NONCE": prints its greeting with the nonce on standard output, then exchanges frames there and on
/// standard input.
inline constexpr char kAgentOption[] = "--agent";

/// "ddlrun --joining-agent NONCE": reads on standard input which agent to join, connects to it, and does the same
/// over that connection.
inline constexpr char kJoiningAgentOption[] = "--joining-agent";

/// "ddlrun --mpi-engine MASTER NAMES mpirun ...": as the only rank of a job, becomes mpirun, without the variables of
/// NAMES, separated by commas, and with MASTER_ADDR=MASTER unless that is "".
inline constexpr char kMpiEngineOption[] = "--mpi-engine";

/// "ddlrun --mpi-rank [options] -- command ...": started by mpirun, starts the command as its rank.
inline constexpr char kMpiRankOption[] = "--mpi-rank";

/// "ddlrun --ask-gpus nvidia": started by an agent with a rank's environment, prints the GPUs that the vendor's
/// runtime shows to it, as one line of JSON.
inline constexpr char kAskGpusOption[] = "--ask-gpus";

/// "ddlrun --watch-gpus nvidia": started by an agent, prints how much the node's GPUs are used, a line of JSON now and
/// then, until the agent ends.
inline constexpr char kWatchGpusOption[] = "--watch-gpus";

}  // namespace ddl::contract
