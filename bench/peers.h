// The contenders of the benchmarks in which ranks exchange data: libddl, its peers, and the limits.
#pragma once

#include <string>
#include <vector>

#include "bench/contender.h"
#include "bench/report.h"
#include "bench/settings.h"
#include "bench/workload.h"

namespace ddl::bench {

/// The work of all contenders, as their rank programs get it in their arguments.
struct RankWork {
  std::string name;  ///< of a collective or a model
  std::vector<SizePlan> plan;
  /// Only those that do not wait in every call take part.
  bool needs_overlap = false;
};

/// The contenders for the settings' job, in the order of the table and the chart. Their commands lack the last
/// two arguments, which differ from run to run: a folder and the scoreboard (run_ranks()).
std::vector<Contender> contenders_of(const RankWork& work, const Site& site, const Settings& settings);

/// The file that the contender ddl-named-timeline writes. The benchmark removes it.
std::string timeline_path();

/// The names of all contenders that can take part in a job on this number of hosts, with these MPIs beside the one in
/// PATH.
std::vector<std::string> contender_names(int hosts, const std::vector<PeerMpi>& mpis);

/// Ours against every peer, and against the limit.
std::vector<Pairing> peer_pairings(const std::vector<PeerMpi>& mpis);

}  // namespace ddl::bench
