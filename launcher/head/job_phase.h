// The phases of a job, and what an event means in each of them.
#pragma once

#include <cstdint>

namespace ddl::launcher {

/// In the order in which a job goes through them; every job leaves some out.
enum class JobPhase : std::uint8_t {
  kStarting,         ///< agents start, and the launch is planned; there are no ranks yet
  kRunning,          ///< ranks run
  kAwaitingCause,    ///< a rank has failed that had observed the end of another, which is not reported yet
  kAwaitingClients,  ///< a rank that serves has failed, perhaps because those that it serves have ended
  kEndingServers,    ///< these have ended, and the ranks that serve are asked to end
  kEnding,           ///< the reason of the end is known, and ranks are asked to end
  kKilling,          ///< the user does not wait for that: ranks get SIGKILL
  kFinishing,        ///< all ranks have ended, and agents clean up
  kDone,             ///< nothing is left on the nodes, and the last output is written
};

enum class JobEvent : std::uint8_t {
  kRankFailed,         ///< by itself
  kObserverFailed,     ///< a rank that had observed the end of another
  kServerFailed,       ///< a rank that serves has exited with an error
  kRankAborted,        ///< it has called PMIx_Abort or MPI_Abort
  kRankStayedStopped,  ///< and others wait for it
  kCauseTimeout,       ///< the time for kAwaitingCause or kAwaitingClients has passed
  kAgentFailed,        ///< it could not start its ranks
  kAgentLost,
  kAgentTerminated,  ///< a resource manager ends the agents of the job
  kSignal,           ///< ddlrun has received a signal that asks it to end
  kTimeout,          ///< of the whole job
  kReasonToEnd,      ///< a stall, a port that is taken, the end of the calling process
  kOutputBroken,     ///< nobody reads ddlrun's standard output any more
  kClientsEnded,     ///< all ranks but those that serve have ended
  kRanksEnded,       ///< all ranks have ended
  kOutputLost,       ///< not all output could be written
  kJobCancelled,     ///< the scheduler has ended the job around this one
};

enum class JobReaction : std::uint8_t {
  kIgnore,
  kEnd,      ///< the job ends for this reason: ranks are asked to end
  kReplace,  ///< the same, if it happened before the known reason, or none is known
  kReport,   ///< the report names it, if it happened before the known reason, or none is known
  kAwait,    ///< the rank is suspected, and what may have caused its failure is awaited
  kAccept,   ///< the job ends for the suspected rank
  kRelease,  ///< ranks that serve are asked to end
  kKill,     ///< ranks get SIGKILL
  kFinish,   ///< agents clean up
  kAbandon,  ///< the last output is not waited for
};

/// Pure.
JobReaction reaction(JobPhase phase, JobEvent event);

}  // namespace ddl::launcher
