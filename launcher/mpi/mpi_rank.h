// One rank that mpirun has started: bound, named and watched over by a ddlrun of its own.
#pragma once

#include <functional>

#include "launcher/job/environment.h"
#include "launcher/job/job_spec.h"
#include "launcher/supervise/job_report.h"

namespace ddl::launcher {

/// Starts the command of the spec as this process's rank, with the CPUs, memory and GPUs that a job of ddlrun's own on this host
/// would give it, and what it is told about itself; passes signals on; ends all that it leaves behind. Returns its exit code, or
/// 128 + a signal's number. on_failure: it failed by itself, and not because this process was told to end. Blocks; for a process
/// with one thread.
int run_mpi_rank(JobSpec spec, const Environment& environment,
                 const std::function<void(const JobReport&)>& on_failure);

}  // namespace ddl::launcher
