// SIGTERM of Slurm in an elastic job.
#pragma once

namespace ddl::runtime {

/// From now on SIGTERM does not end this process if Slurm's step daemon sends it. Slurm sends it to all processes of a
/// job that it ends, and ddlrun, which gets it too, decides what becomes of the ranks. Others' SIGTERM ends the process
/// as before. Does nothing if the program has a handler of its own, or ignores the signal. Once in a process.
void survive_termination_by_slurm();

}  // namespace ddl::runtime
