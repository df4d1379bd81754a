// Runs an elastic job whose ranks go on when others fail: --elastic continue.
#pragma once

#include "base/environment.h"
#include "base/error.h"
#include "launcher/head/run_job.h"
#include "launcher/job/allocation.h"
#include "launcher/job/job_report.h"
#include "launcher/job/job_spec.h"

namespace ddl::launcher {

/// Starts a launch for each host, makes generations of the processes that join, and starts others in the place of those
/// that fail. Returns when nothing of the job is left. The report is that of the last generation, with the times of all.
/// To be called as run_job(). Error: the first run of the discovery script has failed, or there is no memory for a key.
Result<JobReport> run_continued_job(const JobSpec& spec, const Allocation& allocation,
                                    const Environment& head_environment, const Notices& notices);

}  // namespace ddl::launcher
