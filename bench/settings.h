// How a benchmark is to be run.
#pragma once

#include <string>
#include <vector>

namespace ddl::bench {

/// Ranks of every job that is timed.
inline constexpr int kRanks = 2;

struct Settings {
  bool quick = false;     ///< a run that proves that everything works; its figures mean little
  int blocks = 0;         ///< ABBA blocks; every entrant runs twice in each
  std::vector<int> cpus;  ///< all entrants get exactly these
};

/// Where the entrants' programs are; "" if there is none, with the reason beside it.
struct Site {
  std::string programs;  ///< folder of the entrants, beside ddl-bench
  std::string ddlrun;
  std::string mpirun;
  std::string mpi_absent;  ///< why the MPI entrants were not built; "" if they were
  bool is_root = false;
};

}  // namespace ddl::bench
