#include "launcher/node/agent_phases.h"

namespace ddl::launcher {

AgentStep agent_step(AgentPhase phase, AgentEvent event) {
  using enum AgentPhase;
  using enum AgentEvent;
  using enum AgentAction;
  struct Row {
    AgentPhase phase;
    AgentEvent event;
    AgentStep step;
  };
  // clang-format off
  static constexpr Row kRows[] = {
      {kRunning,   kFinish,      {kAskForAllGone,  kFinishing}},
      {kRunning,   kSpawnerLost, {kKillAndReport,  kGone}},
      {kRunning,   kHeadLost,    {kEndProcesses,   kOrphaned}},

      {kFinishing, kLeftovers,   {kEndLeftovers,   kFinishing}},
      {kFinishing, kAllGone,     {kNone,           kGone}},
      {kFinishing, kSpawnerLost, {kKillAndReport,  kGone}},
      {kFinishing, kHeadLost,    {kEndProcesses,   kOrphaned}},

      {kGone,      kAllSent,     {kReportFinished, kFinished}},
      {kGone,      kHeadLost,    {kSay,            kOver}},

      {kFinished,  kHeadLost,    {kNone,           kOver}},

      {kOrphaned,  kAllGone,     {kNone,           kOver}},
      {kOrphaned,  kSpawnerLost, {kKill,           kOver}},
  };
  // clang-format on
  for (const Row& row : kRows) {
    if (row.phase == phase && row.event == event) return row.step;
  }
  return {kNone, phase};
}

}  // namespace ddl::launcher
