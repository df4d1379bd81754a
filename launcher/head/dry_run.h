// What a job would start: its plan, without starting anything.
#pragma once

#include <functional>
#include <string>

#include "base/environment.h"
#include "base/error.h"
#include "launcher/job/allocation.h"
#include "launcher/job/job_spec.h"
#include "launcher/plan/launch_plan.h"

namespace ddl::launcher {

/// The plan as far as it is known without contacting any node but this machine. With asks_hosts, all nodes are
/// asked as by check_hosts(). progress: as Notices::progress in run_job.h. Error: as run_job(), or every host that did not
/// answer, and why.
Result<DryPlan> dry_run(const JobSpec& spec, const Allocation& allocation,
                        const Environment& head_environment, bool asks_hosts,
                        const std::function<void(const std::string&)>& progress);

}  // namespace ddl::launcher
