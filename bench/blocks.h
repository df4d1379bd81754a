// Runs contenders in ABBA blocks.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/error.h"
#include "bench/contender.h"
#include "bench/report.h"

namespace ddl::bench {

/// The result of one run of a contender: the times of each of its cases, in seconds, and its CPU time. A run may have
/// no times of a case, and no figures are added to a case of which no run has any.
struct RunTimes {
  std::vector<std::vector<double>> by_case;
  double cpu_seconds = 0;
};

using RunContender = std::function<Result<RunTimes>(const Contender&)>;

/// Runs every contender that is neither absent nor failed once unmeasured and then twice in each block, interleaved,
/// and adds its figures to the cases. run() returns the times of the cases in the same order. A run that fails is
/// counted and repeated once. If the repetition fails, too, the contender is marked as failed, with the reason, and
/// gets no figures: half of its runs would not be a fair comparison.
/// what: precedes the progress that is shown on stderr if it is a terminal.
void run_blocks(const std::string& what, std::vector<Contender*> contenders, int blocks,
                const RunContender& run, const std::vector<Case*>& cases);

}  // namespace ddl::bench
