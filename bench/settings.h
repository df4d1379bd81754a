// The settings of a benchmark, the paths of the programs that it runs, and the check of the options of a job.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "bench/peer_mpi.h"
#include "bench/workload.h"

namespace ddl::bench {

/// The default number of ranks of a job that is timed.
inline constexpr int kRanks = 2;

/// The job of a benchmark of collectives.
struct JobShape {
  int ranks = kRanks;
  int cpus_per_rank = 1;
  int hosts = 1;  ///< of a cluster, with the same number of ranks on each; 1: this machine, without a cluster
  /// Limit of what each host sends, as tc(8) writes it: "10gbit"; "": no limit.
  std::string rate;
  std::vector<std::uint64_t> sizes;     ///< of messages, in bytes; empty: the benchmark's own
  std::vector<std::string> contenders;  ///< names of those that take part; empty: all
  Model model = Model::kResnet50;       ///< used by the benchmarks "gradients" and "overlap" only
};

struct Settings {
  bool quick = false;     ///< a short run that shows that everything works; its figures mean little
  int blocks = 0;         ///< ABBA blocks; every contender runs twice in each
  std::vector<int> cpus;  ///< all contenders get exactly these
  bool is_far = false;    ///< each run waits until the first of them is far from the others
  JobShape job;

  /// The number of ranks for which there are CPUs. If the job has more, they share them.
  int ranks_with_cpus() const { return std::ssize(cpus) / job.cpus_per_rank; }
};

/// The paths of the contenders' programs; "" for a program that does not exist.
struct Site {
  std::string programs;  ///< folder of the contenders, beside ddl-bench
  std::string ddlrun;
  std::string mpirun;
  std::vector<PeerMpi> mpis;  ///< beside it
  std::string mpi_absent;     ///< why the MPI contenders were not built; "" if they were
  std::string gloo_absent;    ///< the same for Gloo's
  std::string torch_absent;   ///< and for torch's
  bool is_root = false;
};

/// The job of a benchmark of collectives as on the command line; 0 and "" stand for options that were not given.
struct JobOptions {
  int ranks = 0;
  int cpus_per_rank = 0;
  int hosts = 0;
  std::string rate;
  std::vector<std::string> sizes;
  std::string model;
  std::vector<std::string> contenders;
};

/// The job that the options describe, or an error that names the invalid option. takes_job: whether the benchmark has
/// these options. mpis: that take part beside the one in PATH. Pure.
Result<JobShape> job_shape(const JobOptions& options, bool takes_job, const std::vector<PeerMpi>& mpis = {});

}  // namespace ddl::bench
