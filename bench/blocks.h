// Runs contenders in ABBA blocks.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/error.h"
#include "bench/contender.h"
#include "bench/report.h"

namespace ddl::bench {

/// What one run of a contender gave: the times of each of its cases, in seconds, and its CPU time.
struct RunTimes {
  std::vector<std::vector<double>> by_case;
  double cpu_seconds = 0;
};

using RunContender = std::function<Result<RunTimes>(const Contender&)>;

/// Runs every contender that is not absent once unmeasured and then twice in each block, interleaved, and adds its
/// figures to the cases, which hold the results of run() in the same order. A run that fails is counted and
/// repeated once; a contender of which two in a row fail is marked as failed, with the reason, and has no figures: half
/// of its runs would be no fair comparison.
/// what: stands before the progress shown on a terminal's stderr.
void run_blocks(const std::string& what, std::vector<Contender*> contenders, int blocks,
                const RunContender& run, const std::vector<Case*>& cases);

}  // namespace ddl::bench
