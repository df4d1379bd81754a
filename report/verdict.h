// What a person should know of a job, in sentences.
#pragma once

#include <string>
#include <vector>

#include "report/efficiency.h"
#include "report/job_record.h"
#include "report/scaling.h"

namespace ddl::report {

/// One finding: what was measured, with its number, and what to do about it.
struct Finding {
  enum class Weight {
    kFailure,  ///< the job did not do what it should
    kLoss,     ///< it could use its time or its hosts better
    kFact,
  };
  Weight weight = Weight::kFact;
  std::string what;
  std::string advice;  ///< "": nothing need be done
};

/// The most important ones first, at most five. times: of the record. Pure.
std::vector<Finding> verdict(const JobRecord& record, const JobTimes& times);

/// The same of a study. Pure.
std::vector<Finding> verdict(const ScalingResult& result);

/// What a rank has used of CPUs, as a number of them; below 0: unknown. Pure.
double cpus_used(const launcher::RankOutcome& rank);

/// What to write into the next job script, in the scheduler's words, one directive each; empty: nothing is known that
/// would make it better than the last. Pure.
std::vector<std::string> next_request(const JobRecord& record);

}  // namespace ddl::report
