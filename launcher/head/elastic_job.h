// Runs an elastic job: one generation after the other, until one of them ends the job.
#pragma once

#include <functional>

#include "base/environment.h"
#include "base/error.h"
#include "launcher/head/run_job.h"
#include "launcher/job/allocation.h"
#include "launcher/job/job_report.h"
#include "launcher/job/job_spec.h"

namespace ddl::launcher {

/// As run_job(), which it calls for each generation. on_end_of_generation: called with the report of each that is not
/// the last one. The report is that of the last, with the times of all.
/// Error: as run_job(); the first run of the discovery script has failed.
Result<JobReport> run_elastic_job(const JobSpec& spec, const Allocation& allocation,
                                  const Environment& head_environment, const Notices& notices,
                                  const std::function<void(const JobReport&)>& on_end_of_generation);

}  // namespace ddl::launcher
