// What a job costs while its ranks do nothing.
#pragma once

#include <vector>

#include "bench/report.h"
#include "bench/settings.h"

namespace ddl::bench {

/// Starts jobs whose ranks initialise and then block, and measures
///  - memory, at 2 ranks of a program that initialises nothing, and of a PMIx client: what each launcher itself keeps running;
///  - CPU, at 8 initialised ranks over a few seconds: all processes of the job, launcher and ranks.
std::vector<Gauge> idle_job_gauges(const Site& site, const Settings& settings);

}  // namespace ddl::bench
