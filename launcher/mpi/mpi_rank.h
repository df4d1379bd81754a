// One rank that mpirun has started: which rank it is, by mpirun's variables, and a ddlrun of its own that binds, names and
// watches it.
#pragma once

#include <functional>

#include "base/environment.h"
#include "base/error.h"
#include "launcher/job/job_report.h"
#include "launcher/job/job_spec.h"

namespace ddl::launcher {

// Who a process is that an mpirun has started.

struct MpiPlace {
  int rank = 0;
  int size = 1;
  int local_rank = 0;
  int local_size = 1;
};

/// Of what Open MPI, PRRTE and hydra set. Error: none of them has started this process. Pure.
Result<MpiPlace> mpi_place_of(const Environment& environment);

// One rank that mpirun has started: bound, named and watched over by a ddlrun of its own.

/// Starts the command of the spec as this process's rank, with the CPUs, memory and GPUs that a job of ddlrun's own on this host
/// would give it, and what it is told about itself; passes signals on; ends all that it leaves behind. Returns its exit code, or
/// 128 + a signal's number. on_failure: it failed by itself, and not because this process was told to end. Blocks; for a process
/// with one thread.
int run_mpi_rank(JobSpec spec, const Environment& environment,
                 const std::function<void(const JobReport&)>& on_failure);

}  // namespace ddl::launcher
