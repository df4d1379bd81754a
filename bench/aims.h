// What was aimed at, judged by what was found.
#pragma once

#include <string>

#include "bench/report.h"

namespace ddl::bench {

/// An aim for the ratio of two entrants' times: at most limit. At a limit of 1 the question is who is faster, and what
/// is equal is not slower.
Aim ratio_aim(const Report& report, const std::string& text, const Pairing& pairing, double limit);

/// An aim for a gauge: below limit, in the gauge's unit. It is told multiplied by scale, in unit.
Aim gauge_aim(const Report& report, const std::string& text, const std::string& gauge_name, double limit,
              const char* unit, double scale);

}  // namespace ddl::bench
