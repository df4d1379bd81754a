// A communicator over mpi.h.
#pragma once

#include <memory>

#include "runtime/src/backend/mpi/communicator.h"

namespace ddl::runtime::mpi {

/// comm: an MPI_Comm, by its address, since only sources know mpi.h; taken over.
std::unique_ptr<Communicator> own_communicator(const void* comm);

}  // namespace ddl::runtime::mpi
