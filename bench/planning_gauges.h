// How long ddlrun plans where ranks run. There is no peer to compare with: other launchers read the topology from the
// machine while they bind.
#pragma once

#include <vector>

#include "bench/report.h"
#include "bench/settings.h"

namespace ddl::bench {

/// The median time of one binding, in seconds: 8 ranks on a node of 256 CPUs and 8 GPUs whose topology is loaded. The
/// median time in which a launch of 10,000 nodes with 8 ranks each is planned and encoded for all agents, and the bytes
/// of memory that plan and messages take.
std::vector<Gauge> planning_gauges(const Settings& settings);

}  // namespace ddl::bench
