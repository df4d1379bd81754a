// Runs the contenders of a benchmark in which the ranks measure themselves.
#pragma once

#include <string>

#include "bench/peers.h"
#include "bench/report.h"
#include "bench/settings.h"

namespace ddl::bench {

/// "4 ranks on one host", "4 ranks on 2 hosts at 1 Gbit/s".
std::string job_text(const JobShape& job);

/// Fills in the contenders, figures and comparisons of a report that is complete otherwise: it has one case for each
/// size of the plan, in that order, without contenders. A job of several hosts needs to run on the head of a cluster.
void run_ranks(Report& report, const RankWork& work, const Site& site);

}  // namespace ddl::bench
