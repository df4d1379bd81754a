// Where the time of a job went, and who waited for whom.
#pragma once

#include <string>
#include <vector>

#include "launcher/job/job_report.h"

namespace ddl::report {

/// "31 %", "3.1 %".
std::string percent_text(double share);

/// How a rank has spent its time, in seconds. The sum of compute, wait and move is run.
struct RankTimes {
  int rank = 0;
  double run = 0;
  double compute = 0;  ///< outside of libddl's calls
  double wait = 0;     ///< in these, asleep until the other ranks had made the call, too
  double move = 0;     ///< in these, the rest: moving and combining data
};

/// Of a rank that has run. Time in which libddl executed named tensors while the program did something else counts as
/// compute. Pure.
RankTimes times_of(const launcher::RankOutcome& rank);
/// Of what the rank has slept for others, the share that it has lost by that: libddl also waits for named tensors while
/// the program computes. Pure.
double lost_share(const launcher::RankOutcome& rank);

/// The factors of the POP methodology (https://pop-coe.eu): each is between 0 and 1, and above 0.8 is good.
struct Efficiency {
  double load_balance = 1;   ///< mean over longest compute time
  double communication = 1;  ///< longest compute time over run time
  double parallel() const { return load_balance * communication; }
};

/// How long a rank has made the others wait.
struct LateRank {
  int rank = 0;
  double seconds = 0;  ///< the mean of what the other ranks have lost by sleeping for it
  double share = 0;    ///< of their run time
};

/// All that is computed of the ranks' times.
struct JobTimes {
  std::vector<RankTimes> ranks;  ///< of those that have run, by rank
  bool has_calls = false;  ///< some rank has made calls by libddl: without any, all time counts as compute
  RankTimes mean;          ///< over the ranks
  double longest_run = 0;  ///< of a rank, in seconds
  Efficiency efficiency;
  std::vector<LateRank> late;  ///< the latest first; only those for which others have slept
};

/// Pure.
JobTimes times_of(const launcher::JobReport& report);

/// How a job of more ranks compares with another one of the same work.
struct Scaling {
  int ranks = 0, base_ranks = 0;
  double seconds = 0, base_seconds = 0;
  double speedup() const { return base_seconds / seconds; }
  /// 1: as many times faster as there are more ranks.
  double efficiency() const { return speedup() * base_ranks / ranks; }
  /// The same if the work grows with the number of ranks.
  double weak_efficiency() const { return speedup(); }
};

}  // namespace ddl::report
