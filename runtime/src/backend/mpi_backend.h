// The collectives over the site's MPI, and so over any network that it supports: MPI moves the bytes, libddl combines
// them along the canonical tree. So results have the same bits as those of libddl's own backend.
//
// A call. The ranks of each host synchronize in their channel, as in libddl's own backend, so a missing rank of the
// host is known. Then all ranks compare their calls by the minimum and the maximum of the fingerprints, in one small
// step of MPI; only if these differ do they exchange the calls themselves. Then bytes move.
//
//   moves               MPI's function for it
//   allreduce, reduce   small: an allgather, and every rank combines everything; large: an alltoall of slices, which
//                       their owners combine, and an allgather (gather) of these
//   reduce_scatter      an alltoall, and every rank combines its part
//   scan                an allgather, and every rank combines the inputs of the ranks up to its own
//   transfers           a message each way, by which the two ranks compare their calls, then the elements
//
// Several tensors that are one allreduce are packed, as far as a range of their elements is not contiguous. Ranks that
// give no data send nothing of theirs, and combine slices for the others.
#pragma once

#include <map>
#include <memory>

#include "runtime/src/backend/collective_backend.h"
#include "runtime/src/backend/mpi_steps.h"

namespace ddl::runtime {

class MpiBackend final : public CollectiveBackend {
 public:
  /// connections outlive this.
  MpiBackend(Connections& connections, const MpiLimits& limits, MpiSet mpi)
      : steps_(connections, limits, std::move(mpi)) {}

  contract::CpuOperations operations() const override { return contract::CpuOperations::kMpi; }
  Status allows_call() const override { return steps_.allows_call(); }
  bool allows_own_threads() const override { return steps_.takes_threads(); }
  std::unique_ptr<CollectiveBackend> make_duplicate(Connections& duplicate) override;
  Outcome run(const Request& request, CallDeadline deadline) override;
  std::uint64_t next_number() const override { return steps_.channel().call().number + 1; }
  Path last_path() const override { return steps_.channel().path(); }
  Outcome end() override { return {}; }

 private:
  /// Begins the call: returns success when all ranks have begun the same call.
  Outcome agree(const Call& call, CallDeadline deadline);
  Outcome describe_mismatch(const Call& call);
  Outcome alltoallv_by_mpi(const Request& request, CallDeadline deadline);
  Outcome transfer(Request request, CallDeadline deadline);

  MpiSteps steps_;
  std::map<int, std::uint64_t> transfers_;  ///< the number with each rank of the set
};

}  // namespace ddl::runtime
