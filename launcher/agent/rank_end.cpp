#include "launcher/agent/rank_end.h"

#include <sys/wait.h>

#include <csignal>

namespace ddl::launcher {

RankOutcome rank_end(const message::ChildEnded& ended, std::int64_t pid, const EndingSoFar& ending) {
  RankOutcome outcome;
  outcome.rank = ended.rank;
  outcome.pid = pid;
  outcome.run_seconds = ended.run_seconds;
  outcome.before_end = ending.asked_signal == 0 && !ending.killed;
  if (WIFSIGNALED(ended.wait_status)) {
    outcome.kind = RankOutcome::Kind::kSignalled;
    outcome.signal = WTERMSIG(ended.wait_status);
    outcome.core_dumped = WCOREDUMP(ended.wait_status);
    outcome.ended_by_us =
        outcome.signal == ending.asked_signal || (ending.killed && outcome.signal == SIGKILL);
  } else {
    outcome.kind = RankOutcome::Kind::kExited;
    outcome.exit_code = WEXITSTATUS(ended.wait_status);
  }
  return outcome;
}

}  // namespace ddl::launcher
