// What planning where ranks run costs.
#pragma once

#include "bench/report.h"
#include "bench/settings.h"

namespace ddl::bench {

/// The median time of one plan, in seconds: 8 ranks on a node of 256 CPUs and 8 GPUs whose topology is loaded. No peer has
/// anything to be compared with: what others bind by they read from the machine while they bind.
Gauge planning_gauge(const Settings& settings);

}  // namespace ddl::bench
