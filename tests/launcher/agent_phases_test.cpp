// The ways of an agent from its start to its end, and every event in every phase.
#include "launcher/node/agent_phases.h"

#include <vector>

#include "support/catch.h"

namespace ddl::launcher::agent_phases_test {

using enum AgentPhase;
using enum AgentEvent;
using enum AgentAction;
using Actions = std::vector<AgentAction>;

/// The actions of events that follow each other from the start, and the phase after the last.
struct Walk {
  Actions actions;
  AgentPhase phase = kRunning;
};
Walk walk(const std::vector<AgentEvent>& events) {
  Walk walk;
  for (const AgentEvent event : events) {
    const AgentStep step = agent_step(walk.phase, event);
    if (step.action != kNone) walk.actions.push_back(step.action);
    walk.phase = step.next;
  }
  return walk;
}

TEST_CASE(
    "an agent reports Finished when no process is left and all output was sent, and ends with its link") {
  const Walk plain = walk({kFinish, kAllGone, kAllSent, kHeadLost});
  CHECK(plain.actions == Actions{kAskForAllGone, kReportFinished});
  CHECK(plain.phase == kOver);

  const Walk leftovers = walk({kFinish, kLeftovers, kAllGone, kAllSent});
  CHECK(leftovers.actions == Actions{kAskForAllGone, kEndLeftovers, kReportFinished});
  CHECK(leftovers.phase == kFinished);

  CHECK(walk({kAllSent}).phase == kRunning);  // no rank has been started yet
  CHECK(walk({kFinish, kAllSent}).phase == kFinishing);
}

TEST_CASE("an agent that relays messages gets Finish twice, and reports Finished once") {
  const Walk relay = walk({kFinish, kAllGone, kAllSent, kFinish, kAllSent});
  CHECK(relay.actions == Actions{kAskForAllGone, kReportFinished});
  CHECK(relay.phase == kFinished);
}

TEST_CASE("an agent whose head is lost ends all processes, and then itself") {
  const Walk running = walk({kHeadLost, kLeftovers, kHeadLost, kAllGone});
  CHECK(running.actions == Actions{kEndProcesses});
  CHECK(running.phase == kOver);

  const Walk finishing = walk({kFinish, kLeftovers, kHeadLost, kAllGone});
  CHECK(finishing.actions == Actions{kAskForAllGone, kEndLeftovers, kEndProcesses});
  CHECK(finishing.phase == kOver);

  const Walk gone = walk({kFinish, kAllGone, kHeadLost});
  CHECK(gone.actions == Actions{kAskForAllGone, kSay});
  CHECK(gone.phase == kOver);
}

TEST_CASE("an agent whose spawner is lost kills what is left, and reports that to a head that is there") {
  const Walk running = walk({kSpawnerLost, kFinish, kAllSent, kHeadLost});
  CHECK(running.actions == Actions{kKillAndReport, kReportFinished});
  CHECK(running.phase == kOver);

  // AllGone may have been held back until now.
  const Walk finishing = walk({kFinish, kSpawnerLost, kAllGone, kHeadLost});
  CHECK(finishing.actions == Actions{kAskForAllGone, kKillAndReport, kSay});

  const Walk orphaned = walk({kHeadLost, kSpawnerLost});
  CHECK(orphaned.actions == Actions{kEndProcesses, kKill});
  CHECK(orphaned.phase == kOver);

  CHECK(walk({kFinish, kAllGone, kSpawnerLost}).actions == Actions{kAskForAllGone});
}

TEST_CASE("an agent ends from every phase; no event takes it back, and nothing is reported to a lost head") {
  for (const auto phase : {kRunning, kFinishing, kGone, kFinished, kOrphaned, kOver}) {
    const AgentPhase alone = agent_step(phase, kHeadLost).next;
    CHECK(agent_step(alone, kAllGone).next == kOver);
    CHECK(agent_step(alone, kSpawnerLost).next == kOver);
    for (const auto event : {kFinish, kHeadLost, kLeftovers, kAllGone, kSpawnerLost, kAllSent}) {
      CAPTURE(static_cast<int>(phase), static_cast<int>(event));
      const auto [action, next] = agent_step(phase, event);
      CHECK(next >= phase);
      if (phase >= kOrphaned) CHECK((action == kNone || action == kKill));
      if (action == kReportFinished || action == kKillAndReport) CHECK(next != phase);
      if (phase == kOver) CHECK((action == kNone && next == kOver));
    }
  }
}

}  // namespace ddl::launcher::agent_phases_test
