// What --launcher mpirun is asked for beside the job.
#pragma once

#include <string>
#include <vector>

#include "launcher/mpi/mpirun_line.h"

namespace ddl::cli {

struct MpiTask {
  std::string choice;             ///< how it was asked for: "--mpi" or "--launcher mpirun"
  std::string mpirun = "mpirun";  ///< a name in PATH, or a path
  launcher::MpiWishes wishes;
  std::vector<std::string> rank_options;  ///< of ddlrun's own, which each rank's is told: binding, grace
};

}  // namespace ddl::cli
