// How a benchmark is to be run, and where the programs are that it runs. The words of the command line become a JobShape here.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "bench/workload.h"

namespace ddl::bench {

// How a benchmark is to be run.

/// Ranks of a job that is timed, unless told otherwise.
inline constexpr int kRanks = 2;

/// The job of a benchmark of collectives.
struct JobShape {
  int ranks = kRanks;
  int hosts = 1;  ///< of a cluster, each with equally many of the ranks; 1: this machine, and no cluster
  std::string
      rate;  ///< what each host sends at most, as tc(8) writes it: "10gbit"; "": as fast as the machine is
  std::vector<std::uint64_t> sizes;     ///< of messages, in bytes; empty: the benchmark's own
  std::vector<std::string> contenders;  ///< names of those that take part; empty: all
  Model model = Model::kResnet50;       ///< whose gradients; "gradients" alone asks for it
};

struct Settings {
  bool quick = false;     ///< a run that proves that everything works; its figures mean little
  int blocks = 0;         ///< ABBA blocks; every contender runs twice in each
  std::vector<int> cpus;  ///< all contenders get exactly these
  JobShape job;
};

/// Where the contenders' programs are; "" if there is none, with the reason beside it.
struct Site {
  std::string programs;  ///< folder of the contenders, beside ddl-bench
  std::string ddlrun;
  std::string mpirun;
  std::string mpi_absent;   ///< why the MPI contenders were not built; "" if they were
  std::string gloo_absent;  ///< the same of Gloo's
  bool is_root = false;
};

// What a user says about the job of a benchmark of collectives. Pure.

/// As on the command line; 0 and "" stand for what was not said.
struct JobOptions {
  int ranks = 0;
  int hosts = 0;
  std::string rate;
  std::vector<std::string> sizes;
  std::string model;
  std::vector<std::string> contenders;
};

/// The job that is meant; an error that says what cannot be meant. takes_job: whether the benchmark has such options.
Result<JobShape> job_shape(const JobOptions& options, bool takes_job);

}  // namespace ddl::bench
