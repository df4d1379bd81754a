// What a job that does not go on waits for, as sentences.
#pragma once

#include <string>
#include <vector>

#include "launcher/job/rank_activity.h"

namespace ddl::launcher {

/// Ranks that wait for others.
struct Stall {
  std::string key;     ///< the same as long as it is the same stall
  std::string what;    ///< that they wait in or for: "allreduce #812 of process set 2", 'tensor "x"'
  double seconds = 0;  ///< how long the first of them has waited
  /// "allreduce #812 of process set 2: 3 of 4 ranks have waited for 61 s for rank 3 (node2, pid 4242), which is
  /// stopped (SIGSTOP)".
  std::string sentence;
  std::vector<int> waiting;  ///< the ranks that wait, ascending
  /// The ranks for which they wait, without those that wait themselves in an earlier call; if all have come, those that
  /// are stopped or have ended. Ascending.
  std::vector<int> missing;
  /// The ranks for which they may wait beside these: they have not answered, or do not show all of their tensors.
  std::vector<int> unknown;
};

/// "is stopped (SIGSTOP)", "has been in user code for 73 s": what a rank does that others wait for. Pure.
std::string doing_text(const RankActivity& rank);
/// "it has been in user code for 73 s, and waits in the system call futex": the same with what the kernel knows. Pure.
std::string hanging_text(const RankActivity& rank);

/// The waits that have lasted for at least this time. ranks: those of the job that have answered, each once. hosts: by
/// rank, of all. Pure.
std::vector<Stall> find_stalls(const std::vector<RankActivity>& ranks, const std::vector<std::string>& hosts,
                               double least_seconds);

}  // namespace ddl::launcher
