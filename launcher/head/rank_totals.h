// What the ranks of a job have counted since it began. Each of their processes counts for itself; in a job that goes on,
// another process may take the number of a rank, and a process may get another number.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "launcher/job/job_inspection.h"

namespace ddl::launcher {

/// One thread.
class RankTotals {
 public:
  /// Replaces the counts of each rank, those of its process, by all that was counted under its number on its host: no
  /// count falls while the job lasts. Appends the ranks that are former ones of the job's hosts. processes: by rank a
  /// number that no other process of the job has; empty: the ranks' own numbers.
  void apply(JobInspection& job, const std::vector<std::int64_t>& processes);

 private:
  struct Counts {
    std::int64_t pid = 0;
    Seconds cpu_seconds{-1};  ///< below 0: unknown
    RankCalls calls;
  };
  using Place = std::pair<std::string, int>;  ///< host and rank

  static Counts since(const Counts& last, const Counts& now);
  static void add(const Counts& more, Counts& total);

  std::map<std::int64_t, Counts> last_;  ///< of each process
  std::map<Place, Counts> totals_;
};

}  // namespace ddl::launcher
