// Who takes part where ranks exchange data: libddl, its peers, and the limits.
#pragma once

#include <string>
#include <vector>

#include "bench/contender.h"
#include "bench/report.h"
#include "bench/settings.h"
#include "bench/workload.h"

namespace ddl::bench {

/// What all of them do, as the rank programs are told it.
struct RankWork {
  std::string name;  ///< of a collective or a model
  std::vector<SizePlan> plan;
};

/// The contenders for the settings' job, in the order of the table and the chart. Their commands lack two last words, which
/// each run has its own of: a folder and the scoreboard (run_ranks()).
std::vector<Contender> contenders_of(const RankWork& work, const Site& site, const Settings& settings);

/// The names of all that can take part in a job on so many hosts.
std::vector<std::string> contender_names(int hosts);

/// Ours against every peer, and against the limit.
const std::vector<Pairing>& peer_pairings();

}  // namespace ddl::bench
