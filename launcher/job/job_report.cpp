#include "launcher/job/job_report.h"

#include <fmt/format.h>

#include "base/printable_text.h"
#include "base/text.h"

namespace ddl::launcher {

std::string rank_label(const RankOutcome& outcome) {
  std::string text = fmt::format("rank {}", outcome.rank);
  if (!outcome.host.empty()) text += " on " + outcome.host;
  if (outcome.pid > 0) text += fmt::format(" (pid {})", outcome.pid);
  return text;
}

std::string rank_ending(const RankOutcome& outcome) {
  switch (outcome.kind) {
    case RankOutcome::Kind::kSignalled:
      return fmt::format("was killed by {}{}", signal_text(outcome.signal),
                         outcome.core_dumped ? ", core dumped" : "");
    case RankOutcome::Kind::kExited: return fmt::format("exited with {}", outcome.exit_code);
    case RankOutcome::Kind::kStartFailed:
      return "could not be started: " + printable_line(outcome.start_error);
    case RankOutcome::Kind::kRunning: return "was running at the last report";
    case RankOutcome::Kind::kNotStarted: return "was not started";
  }
  return "";
}

}  // namespace ddl::launcher
