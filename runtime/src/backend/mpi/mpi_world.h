// The MPI of this process, in which every rank of the job is. Implemented by the on-demand module libddl_mpi.so.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "runtime/src/backend/mpi/communicator.h"

namespace ddl::runtime {

class MpiWorld {
 public:
  MpiWorld() = default;
  virtual ~MpiWorld() = default;
  MpiWorld(const MpiWorld&) = delete;
  MpiWorld& operator=(const MpiWorld&) = delete;

  /// This process's place in the job.
  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// Of these ranks of the job, in their order. Collective over them; generation tells apart sets that are made at the same
  /// time. Blocks until all of them have come.
  virtual Result<std::unique_ptr<Communicator>> communicator(const std::vector<int>& job_ranks,
                                                             std::uint32_t generation) = 0;
  /// Whether several threads may call MPI at once.
  virtual bool takes_threads() const = 0;
  /// "Open MPI v4.1.4".
  virtual const std::string& library() const = 0;
  /// Something is under way that will not end: MPI must not be finalised by us any more.
  virtual void abandon() = 0;
};

}  // namespace ddl::runtime
