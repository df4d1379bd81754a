// Collectives that move blocks between hosts with one rank each: from buffer to buffer.
//
// Nothing is laid out or staged: a block is sent from where its sender has it, and received where its receiver wants it.
// Only where the two are the same buffer, and what comes would stand on what has still to go, is it received beside it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/src/cluster/cluster_call.h"
#include "runtime/src/collective/block_move.h"

namespace ddl::runtime {

class ClusterDirectMove final : public ClusterCall {
 public:
  /// Every rank is alone on its host.
  ClusterDirectMove(ClusterPlace place, const MoveInBuffers& work);
  std::uint64_t chunks() const override { return (move_.longest() + per_chunk_ - 1) / per_chunk_; }
  bool needs_mesh() const override { return !is_broadcast_; }
  std::size_t longest_slice() const override;
  void fill(std::uint64_t, std::byte*) override {}
  void take_inputs(std::uint64_t chunk) override;
  Route gather(std::uint64_t chunk, SliceBuffers& buffers) override;
  void publish(std::uint64_t chunk, SliceBuffers& buffers, std::byte* result) override;
  void take(std::uint64_t) override {}

 private:
  /// The only rank of a host.
  int rank_on(int host) const { return ranks_on(host).front(); }
  /// The bytes of a chunk's piece of the block from one rank for another, in the sender's and in the receiver's buffer.
  ByteRange in_send(int from, int to, std::uint64_t chunk) const;
  ByteRange in_recv(int from, int to, std::uint64_t chunk) const;

  const BlockMove& move_;
  std::size_t element_;
  const std::byte* send_;
  std::byte* recv_;
  bool is_broadcast_;
  bool receives_aside_;
  std::uint64_t per_chunk_;  ///< elements of every block
};

}  // namespace ddl::runtime
