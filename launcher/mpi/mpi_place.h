// Who a process is that an mpirun has started.
#pragma once

#include "base/error.h"
#include "launcher/job/environment.h"

namespace ddl::launcher {

struct MpiPlace {
  int rank = 0;
  int size = 1;
  int local_rank = 0;
  int local_size = 1;
};

/// Of what Open MPI, PRRTE and hydra set. Error: none of them has started this process. Pure.
Result<MpiPlace> mpi_place_of(const Environment& environment);

}  // namespace ddl::launcher
