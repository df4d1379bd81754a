// One rank that mpirun has started: which rank it is, by mpirun's variables, and a ddlrun of its own that binds,
// names and watches it.
#pragma once

#include <functional>
#include <string>

#include "base/environment.h"
#include "base/error.h"
#include "launcher/job/job_report.h"
#include "launcher/job/job_spec.h"

namespace ddl::launcher {

struct MpiRankNumbers {
  int rank = 0;
  int num_ranks = 1;
  int local_rank = 0;
  int local_size = 1;
};

/// From the variables that Open MPI, PRRTE and hydra set. Error: none of them has started this process. Pure.
Result<MpiRankNumbers> mpi_rank_numbers(const Environment& environment);

/// Starts the command of the spec as this process's rank, with the CPUs, memory and GPUs that a job of ddlrun's own
/// on this host would give it, and with the variables that describe a rank; forwards signals; ends all processes that
/// it leaves behind. Returns its exit code, or 128 + a signal's number. warn: gets one sentence about each other
/// ddlrun that uses the same CPUs of the scheduler's job; only the first rank of a host looks for them. on_failure: the
/// rank failed by itself, and not because a signal asked this process to end. Blocks; for a process with one thread.
int run_mpi_rank(JobSpec spec, const Environment& environment,
                 const std::function<void(const std::string&)>& warn,
                 const std::function<void(const JobReport&)>& on_failure);

}  // namespace ddl::launcher
