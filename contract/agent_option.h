// How ddlrun is asked to be something else than the command: by another ddlrun only.
#pragma once

namespace ddl::contract {

/// "ddlrun --agent NONCE": greets on standard output with the nonce, then speaks frames there and on standard input.
inline constexpr char kAgentOption[] = "--agent";

/// "ddlrun --joining-agent NONCE": reads on standard input whom to join, connects, and then does the same over that.
inline constexpr char kJoiningAgentOption[] = "--joining-agent";

/// "ddlrun --mpi-engine MASTER NAMES mpirun ...": as the only rank of a job, becomes mpirun; without the variables of NAMES, by
/// comma, and with MASTER_ADDR=MASTER unless that is "".
inline constexpr char kMpiEngineOption[] = "--mpi-engine";

/// "ddlrun --mpi-rank [options] -- command ...": started by mpirun, starts the command as its rank.
inline constexpr char kMpiRankOption[] = "--mpi-rank";

}  // namespace ddl::contract
