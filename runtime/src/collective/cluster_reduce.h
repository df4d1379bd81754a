// Allreduce, reduce and reduce_scatter between hosts.
//
// The ranks of a host are reduced in rank order, slice by slice, each slice by its lane. Small values go whole along the
// canonical tree (recursive doubling): few steps. Large ones go so that each byte crosses the network as rarely as can be:
// cut into one unit a host, of which every host gets all hosts' values, combines them along the same tree, and gives the
// result to those that want it; or, among many hosts, halved from step to step of the tree and put together on the way
// back, so that no host needs to know more than its partners in the tree. All of these give the same bits. Around the
// ring, which only who asks for it gets, they are others.
#pragma once

#include <vector>

#include "runtime/src/collective/algorithm.h"
#include "runtime/src/collective/block_move.h"
#include "runtime/src/collective/cluster_call.h"
#include "runtime/src/collective/request.h"
#include "runtime/src/common/call.h"

namespace ddl::runtime {

/// Allreduce and reduce.
class ClusterReduce final : public ClusterCall {
 public:
  /// request outlives this.
  ClusterReduce(ClusterContext context, const Request& request);
  std::uint64_t chunks() const override { return chunking_.chunks(); }
  bool piggybacks_first() const override { return algorithm_ == Algorithm::kTree; }
  bool needs_mesh() const override {
    return algorithm_ == Algorithm::kHostReduceScatterAllgather || algorithm_ == Algorithm::kRing;
  }
  Reduction combine() const override;
  std::size_t longest_slice() const override;
  void fill(std::uint64_t chunk, std::byte* input) override;
  Route gather(std::uint64_t chunk, SliceBuffers& buffers) override;
  void publish(std::uint64_t chunk, SliceBuffers& buffers, std::byte* result) override;
  void take(std::uint64_t chunk) override;
  const std::byte* caller_input(std::uint64_t chunk) const override {
    return request_.send + chunking_.chunk(chunk).first * element_;
  }
  std::byte* caller_result(std::uint64_t chunk) const override {
    return takes_here() ? request_.recv + chunking_.chunk(chunk).first * element_ : nullptr;
  }

 private:
  /// One unit a host: its bytes.
  std::vector<std::size_t> units_of(const ElementRange& slice) const;
  /// Where the chunk's result is to be, if its value may be made there of this rank's input alone: then it is sent from
  /// there, and what comes is merged there. Every operation makes of two inputs what it would make of them when each has
  /// been brought into its one form before (a NaN, a truth value). Otherwise null.
  std::byte* partials_in_result(std::uint64_t chunk) const;
  bool takes_here() const { return root_host_ < 0 || root_host_ == own_host(); }

  const Request& request_;
  std::size_t element_;
  std::size_t partial_;  ///< bytes of an element on its way between hosts
  int ranks_;
  int root_host_ = -1;  ///< -1: all hosts take the result
  Algorithm algorithm_;
  Chunking chunking_;
};

class ClusterReduceScatter final : public ClusterCall {
 public:
  /// request outlives this.
  ClusterReduceScatter(ClusterContext context, const Request& request);
  std::uint64_t chunks() const override;
  /// All of it, if it is little: every host then gets what the others are to have as well.
  bool piggybacks_first() const override { return is_piggybacked_; }
  bool needs_mesh() const override { return !is_piggybacked_; }
  Reduction combine() const override;
  void fill(std::uint64_t chunk, std::byte* input) override;
  Route gather(std::uint64_t chunk, SliceBuffers& buffers) override;
  void publish(std::uint64_t chunk, SliceBuffers& buffers, std::byte* result) override;
  void take(std::uint64_t chunk) override;

 private:
  /// A lane's slice of what a chunk has for one rank.
  ElementRange slice_for(int rank, std::uint64_t chunk, int lane) const;

  const Request& request_;
  std::size_t element_;
  std::size_t partial_;
  BlockMove move_;
  std::uint64_t per_chunk_;  ///< elements for each rank
  bool is_piggybacked_;
};

}  // namespace ddl::runtime
