// The collectives over the site's MPI, and so over whatever network it knows: MPI moves the bytes, libddl combines them
// along the canonical tree. So results have the same bits as those of libddl's own way.
//
// A call. The ranks of each host meet in their channel, as ever, so a rank that is missing there is known. Then all compare
// what they called by the least and the greatest fingerprint, which is one small step of MPI; only if these differ do they
// tell each other who called what. Then bytes move.
//
//   moves               MPI's function for it
//   allreduce, reduce   little: an allgather, and every rank combines everything; more: an alltoall of slices, which
//                       their owners combine, and an allgather (gather) of these
//   reduce_scatter      an alltoall, and every rank combines its part
//   scan                an allgather, and every rank combines what is before it
//   transfers           a message each way, in which the two compare, and the elements
#pragma once

#include <map>
#include <memory>

#include "runtime/src/backend/collective_backend.h"
#include "runtime/src/backend/mpi_steps.h"

namespace ddl::runtime {

class MpiBackend final : public CollectiveBackend {
 public:
  /// connections outlive this.
  MpiBackend(Connections& connections, const MpiLimits& limits, std::shared_ptr<MpiWorld> world,
             std::unique_ptr<Communicator> communicator)
      : steps_(connections, limits, std::move(world), std::move(communicator)) {}

  contract::CpuOperations operations() const override { return contract::CpuOperations::kMpi; }
  Outcome run(const Request& request, CallDeadline deadline) override;

 private:
  /// Begins the call: returns when all ranks have begun the same.
  Outcome agree(const Call& call, CallDeadline deadline);
  Outcome describe_mismatch(const Call& call);
  Outcome alltoallv_by_mpi(const Request& request, CallDeadline deadline);
  Outcome transfer(Request request, CallDeadline deadline);

  MpiSteps steps_;
  std::map<int, std::uint64_t> transfers_;  ///< how many with each rank of the set
};

}  // namespace ddl::runtime
