// Allreduce, reduce and reduce_scatter between hosts.
//
// The ranks of a host are reduced in rank order, slice by slice, each slice by its lane. Small values are sent
// complete along the canonical tree (recursive doubling): few steps. For large ones each byte crosses the network as
// rarely as possible: reduce-scatter and allgather with one unit per host, where every host gets all hosts' values of
// its unit, combines them along the same tree, and sends the result to the hosts that need it; or, among many hosts,
// recursive halving and doubling along the tree, so that a host needs only connections to its partners in the tree.
// All of these give the same bits. The ring, which is taken only if the user names it, gives others.
//
// Ranks that give no data are not among the inputs of their host. A host without any input has the identity element of
// the operation as its value, so the tree stays as it is.
#pragma once

#include <vector>

#include "runtime/src/collective/algorithm.h"
#include "runtime/src/collective/block_move.h"
#include "runtime/src/collective/cluster_call.h"
#include "runtime/src/collective/parts.h"
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
  Algorithm algorithm() const { return algorithm_; }
  bool needs_mesh() const override {
    return algorithm_ == Algorithm::kUnits || algorithm_ == Algorithm::kRing;
  }
  Reduction combine() const override;
  std::size_t longest_slice() const override;
  void fill(std::uint64_t chunk, std::byte* input) override;
  Route gather(std::uint64_t chunk, SliceBuffers& buffers) override;
  void publish(std::uint64_t chunk, SliceBuffers& buffers, std::byte* result) override;
  void take(std::uint64_t chunk) override;
  const std::byte* caller_input(std::uint64_t chunk) const override { return caller_buffers(chunk).send; }
  std::byte* caller_result(std::uint64_t chunk) const override {
    return takes_here_ ? caller_buffers(chunk).recv : nullptr;
  }

 private:
  /// Every rank stages: not every chunk is contiguous in every rank's buffers.
  bool is_staged() const { return !request_.parts.empty() || !request_.contributes.empty(); }
  /// This rank's buffers of the chunk; null if the chunk is in several parts, or this rank has no data.
  Part caller_buffers(std::uint64_t chunk) const;
  /// The bytes of each host's unit.
  std::vector<std::size_t> units_of(const ElementRange& slice) const;
  /// The destination of the chunk's result, if this rank's input alone may serve as the host's value there: then the
  /// value is sent from there, and received values are merged there. This is possible because an operation gives the
  /// same result whether or not its inputs have been normalised before (NaNs, truth values). Otherwise null.
  std::byte* partials_in_result(std::uint64_t chunk) const;

  const Request& request_;
  CallBuffers buffers_;
  std::size_t element_;
  std::size_t partial_;     ///< bytes of an element on its way between hosts
  int contributors_;        ///< ranks that contribute data
  int root_host_ = -1;      ///< -1: all hosts take the result
  bool takes_here_ = true;  ///< a rank of this host takes the result
  Algorithm algorithm_;
  Chunking chunking_;
};

class ClusterReduceScatter final : public ClusterCall {
 public:
  /// request outlives this.
  ClusterReduceScatter(ClusterContext context, const Request& request);
  std::uint64_t chunks() const override;
  /// The complete call, if it is small: every host then also gets the parts of the others.
  bool piggybacks_first() const override { return is_piggybacked_; }
  bool needs_mesh() const override { return !is_piggybacked_; }
  Reduction combine() const override;
  void fill(std::uint64_t chunk, std::byte* input) override;
  Route gather(std::uint64_t chunk, SliceBuffers& buffers) override;
  void publish(std::uint64_t chunk, SliceBuffers& buffers, std::byte* result) override;
  void take(std::uint64_t chunk) override;

 private:
  /// A lane's slice of the part of a chunk that is for one rank.
  ElementRange slice_for(int rank, std::uint64_t chunk, int lane) const;

  const Request& request_;
  std::size_t element_;
  std::size_t partial_;
  int contributors_;
  BlockMove move_;
  std::uint64_t per_chunk_;  ///< elements for each rank
  bool is_piggybacked_;
};

}  // namespace ddl::runtime
