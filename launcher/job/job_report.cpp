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

std::string rank_ranges(const std::vector<int>& ranks) {
  constexpr std::size_t kMaxRanges = 12;
  std::vector<std::string> parts;
  std::size_t next = 0;
  while (next < ranks.size()) {
    if (parts.size() == kMaxRanges) {
      return join(parts, ", ") + " and " + std::to_string(ranks.size() - next) + " more";
    }
    std::size_t last = next;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    std::string part = std::to_string(ranks[next]);
    if (last > next) part += (last == next + 1 ? ", " : "-") + std::to_string(ranks[last]);
    parts.push_back(std::move(part));
    next = last + 1;
  }
  return join(parts, ", ");
}

std::string ranks_text(const std::vector<int>& ranks) {
  return (ranks.size() == 1 ? "rank " : "ranks ") + rank_ranges(ranks);
}

std::string duration_text(double seconds) {
  if (seconds < 0.9995) return fmt::format("{:.3f} s", seconds);
  if (seconds < 9.995) return fmt::format("{:.2f} s", seconds);
  if (seconds < 59.95) return fmt::format("{:.1f} s", seconds);
  const auto whole = static_cast<long long>(std::llround(seconds));
  if (whole < 3600) return fmt::format("{} min {} s", whole / 60, whole % 60);
  return fmt::format("{} h {} min", whole / 3600, whole % 3600 / 60);
}

}  // namespace ddl::launcher
