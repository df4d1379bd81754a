// The phases of an agent, from its start to its end, and what it does when an event takes it from one to the next:
// decided from values, without I/O.
#pragma once

#include <cstdint>

namespace ddl::launcher {

enum class AgentPhase : std::uint8_t {
  kRunning,    ///< the ranks run, or are still to be started
  kFinishing,  ///< the head has sent Finish: processes that ranks have left are ended
  kGone,       ///< no process is left; the rest of the output is sent
  kFinished,   ///< Finished was reported: the head closes the link when it has everything
  kOrphaned,   ///< the head is lost: every process is ended, and no message of the head is read
  kOver,       ///< the agent leaves its loop and ends
};

enum class AgentEvent : std::uint8_t {
  kFinish,       ///< from the head
  kHeadLost,     ///< its link has closed, or it was silent or stopped, or it has sent an invalid message
  kLeftovers,    ///< from the spawner: processes are left
  kAllGone,      ///< from the spawner: no process is left
  kSpawnerLost,  ///< it has ended
  kAllSent,      ///< no output and no answer of the ranks is to come
};

enum class AgentAction : std::uint8_t {
  kNone,
  kAskForAllGone,   ///< have the spawner report Leftovers and AllGone
  kEndLeftovers,    ///< SIGTERM, the job's grace, SIGKILL
  kReportFinished,  ///< to the head
  kKillAndReport,   ///< kill every process of the job, and tell the head
  kKill,            ///< every process of the job
  kSay,             ///< on standard error, that the head is lost
  kEndProcesses,    ///< say that, and SIGTERM, a short grace, SIGKILL; ask for AllGone
};

struct AgentStep {
  AgentAction action = AgentAction::kNone;
  AgentPhase next = AgentPhase::kRunning;
  bool operator==(const AgentStep&) const = default;
};

/// An event that changes nothing in a phase has no action there, and the phase stays.
AgentStep agent_step(AgentPhase phase, AgentEvent event);

}  // namespace ddl::launcher
