// What a user says about the job of a benchmark of collectives. Pure.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "bench/settings.h"

namespace ddl::bench {

/// As on the command line; 0 and "" stand for what was not said.
struct JobOptions {
  int ranks = 0;
  int hosts = 0;
  std::string rate;
  std::vector<std::string> sizes;
  std::string model;
  std::vector<std::string> entrants;
};

/// The job that is meant; an error that says what cannot be meant. takes_job: whether the benchmark has such options.
Result<JobShape> job_shape(const JobOptions& options, bool takes_job);

}  // namespace ddl::bench
