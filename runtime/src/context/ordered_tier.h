// The collectives in the order in which all ranks call them, on one host or on several.
#pragma once

#include "runtime/src/cluster/cluster.h"
#include "runtime/src/collective/host_collectives.h"

namespace ddl::runtime {

/// Sends each call to where it is done. Not thread-safe.
class OrderedTier {
 public:
  /// cluster: null if all ranks are on one host. Both outlive this.
  OrderedTier(Channel& channel, Cluster* cluster) : channel_(channel), cluster_(cluster) {}

  Outcome allreduce(const std::byte* send, std::byte* recv, std::uint64_t count, ddl_dtype dtype, ddl_op op,
                    CallDeadline deadline) {
    return cluster_ == nullptr ? runtime::allreduce(channel_, send, recv, count, dtype, op, deadline)
                               : cluster_->allreduce(send, recv, count, dtype, op, deadline);
  }
  Outcome broadcast(std::byte* buffer, std::uint64_t count, ddl_dtype dtype, int root,
                    CallDeadline deadline) {
    return cluster_ == nullptr ? runtime::broadcast(channel_, buffer, count, dtype, root, deadline)
                               : cluster_->broadcast(buffer, count, dtype, root, deadline);
  }
  Outcome allgather(const std::byte* send, std::byte* recv, std::uint64_t count, ddl_dtype dtype,
                    CallDeadline deadline) {
    return cluster_ == nullptr ? runtime::allgather(channel_, send, recv, count, dtype, deadline)
                               : cluster_->allgather(send, recv, count, dtype, deadline);
  }
  Outcome barrier(CallDeadline deadline) {
    return cluster_ == nullptr ? runtime::barrier(channel_, deadline) : cluster_->barrier(deadline);
  }

 private:
  Channel& channel_;
  Cluster* cluster_;
};

}  // namespace ddl::runtime
