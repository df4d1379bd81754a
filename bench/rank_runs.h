// One benchmark in which the ranks of a job are measured from inside: its runs, and the report of them.
#pragma once

#include <string>
#include <vector>

#include "bench/peers.h"
#include "bench/report.h"
#include "bench/settings.h"

namespace ddl::bench {

/// "4 ranks on one host", "4 ranks on 2 hosts at 1 Gbit/s".
std::string job_text(const JobShape& job);

/// Fills in entrants, cases' figures and comparisons of a report that has everything else: one case for each size of the
/// plan, in that order, without entrants. With several hosts, on the head of a cluster.
void run_ranks(Report& report, const RankWork& work, const Site& site);

}  // namespace ddl::bench
