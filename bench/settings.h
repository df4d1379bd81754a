// How a benchmark is to be run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/gradients.h"

namespace ddl::bench {

/// Ranks of a job that is timed, unless told otherwise.
inline constexpr int kRanks = 2;

/// The job of a benchmark of collectives.
struct JobShape {
  int ranks = kRanks;
  int hosts = 1;  ///< of a cluster, each with equally many of the ranks; 1: this machine, and no cluster
  std::string
      rate;  ///< what each host sends at most, as tc(8) writes it: "10gbit"; "": as fast as the machine is
  std::vector<std::uint64_t> sizes;   ///< of messages, in bytes; empty: the benchmark's own
  std::vector<std::string> entrants;  ///< names of those that take part; empty: all
  Model model = Model::kResnet50;     ///< whose gradients; "gradients" alone asks for it
};

struct Settings {
  bool quick = false;     ///< a run that proves that everything works; its figures mean little
  int blocks = 0;         ///< ABBA blocks; every entrant runs twice in each
  std::vector<int> cpus;  ///< all entrants get exactly these
  JobShape job;
};

/// Where the entrants' programs are; "" if there is none, with the reason beside it.
struct Site {
  std::string programs;  ///< folder of the entrants, beside ddl-bench
  std::string ddlrun;
  std::string mpirun;
  std::string mpi_absent;   ///< why the MPI entrants were not built; "" if they were
  std::string gloo_absent;  ///< the same of Gloo's
  bool is_root = false;
};

}  // namespace ddl::bench
