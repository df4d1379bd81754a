#include "launcher/head/job_phase.h"

#include <array>
#include <cstddef>

namespace ddl::launcher {
namespace {

using enum JobReaction;

constexpr std::size_t kPhases = static_cast<std::size_t>(JobPhase::kDone) + 1;
constexpr std::size_t kEvents = static_cast<std::size_t>(JobEvent::kJobCancelled) + 1;

constexpr JobReaction _ = kIgnore;

// A row for each event, a column for each phase.
// clang-format off
constexpr std::array<std::array<JobReaction, kPhases>, kEvents> kReactions{{
//                       Starting  Running   Awaiting- Awaiting- Ending-   Ending    Killing   Finishing Done
//                                           Cause     Clients   Servers
/* RankFailed        */ {_,        kEnd,     kEnd,     kEnd,     _,        kReport,  kReport,  _,        _},
/* ObserverFailed    */ {_,        kAwait,   _,        kAccept,  _,        _,        _,        _,        _},
/* ServerFailed      */ {_,        kAwait,   _,        _,        _,        kReport,  kReport,  _,        _},
/* RankAborted       */ {_,        kEnd,     kEnd,     kEnd,     _,        _,        _,        _,        _},
/* RankStayedStopped */ {_,        kEnd,     kAccept,  kAccept,  _,        _,        _,        _,        _},
/* CauseTimeout      */ {_,        _,        kAccept,  kAccept,  _,        _,        _,        _,        _},
/* AgentFailed       */ {kEnd,     kEnd,     kEnd,     kEnd,     kEnd,     _,        _,        kReplace, _},
/* AgentLost         */ {kEnd,     kEnd,     kEnd,     kEnd,     kEnd,     kReplace, kReplace, kReplace, _},
/* AgentTerminated   */ {kEnd,     kEnd,     kEnd,     kEnd,     kEnd,     kReplace, kReplace, _,        _},
/* Signal            */ {kEnd,     kEnd,     kAccept,  kAccept,  kEnd,     kKill,    _,        kKill,    kAbandon},
/* Timeout           */ {_,        kEnd,     kAccept,  kAccept,  kKill,    _,        _,        _,        _},
/* ReasonToEnd       */ {_,        kEnd,     kAccept,  kAccept,  kEnd,     _,        _,        _,        _},
/* OutputBroken      */ {_,        kEnd,     kAccept,  kAccept,  kEnd,     _,        _,        kReport,  kReport},
/* ClientsEnded      */ {_,        kRelease, _,        kRelease, _,        _,        _,        _,        _},
/* RanksEnded        */ {_,        kFinish,  kFinish,  kFinish,  kFinish,  kFinish,  kFinish,  _,        _},
/* OutputLost        */ {_,        _,        _,        _,        _,        _,        _,        _,        kReport},
/* JobCancelled      */ {_,        _,        _,        _,        _,        _,        _,        _,        kReport},
}};
// clang-format on

}  // namespace

JobReaction reaction(JobPhase phase, JobEvent event) {
  return kReactions[static_cast<std::size_t>(event)][static_cast<std::size_t>(phase)];
}

}  // namespace ddl::launcher
