// Collectives that move blocks (collective/block_move.h), between hosts.
//
// What goes from one host to another goes in one piece a lane: a slice of every block that ranks of the one have for
// ranks of the other; a block that several ranks of a host want crosses once. All pairs of hosts exchange directly and at
// once; only a broadcast goes along the canonical tree. Blocks between ranks of one host never leave it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/src/cluster/cluster_call.h"
#include "runtime/src/collective/block_move.h"

namespace ddl::runtime {

class ClusterMove final : public ClusterCall {
 public:
  ClusterMove(ClusterPlace place, const MoveInBuffers& work);
  std::uint64_t chunks() const override { return (move_.longest() + per_chunk_ - 1) / per_chunk_; }
  bool needs_mesh() const override { return !is_broadcast_; }
  void fill(std::uint64_t chunk, std::byte* input) override;
  void take_inputs(std::uint64_t chunk) override;
  Route gather(std::uint64_t chunk, SliceBuffers& buffers) override;
  void publish(std::uint64_t chunk, SliceBuffers& buffers, std::byte* result) override;
  void take(std::uint64_t chunk) override;

 private:
  /// A part of a block, from one rank to another, or to all of a host that receive.
  struct Part {
    int from = 0;
    int to = 0;
    ElementRange slice;  ///< of the chunk's piece of the block
    std::size_t at = 0;  ///< where it stands in the bytes of its lane, counted from the first part
    std::size_t bytes = 0;
  };

  /// Calls each(part) for all that go from one host to another by one lane, in the order in which they lie there. at: where
  /// the first stands. Returns where the last ends.
  template <class Each>
  std::size_t for_parts(int from_host, int to_host, std::uint64_t chunk, int lane, std::size_t at,
                        Each each) const;
  /// Calls each(part) for all that come from other hosts.
  template <class Each>
  std::size_t for_arriving(std::uint64_t chunk, int lane, Each each) const;
  /// Where this rank's chunk of the block of another begins.
  std::byte* place_of(int from, std::uint64_t chunk) const;
  /// Where a rank's block for another stands in its input area.
  std::size_t input_at(int to) const {
    return move_.is_shared() ? 0 : static_cast<std::size_t>(to) * per_chunk_ * element_;
  }

  const BlockMove& move_;
  std::size_t element_;
  const std::byte* send_;
  std::byte* recv_;
  bool is_broadcast_;
  int root_host_ = 0;  ///< of a broadcast
  std::uint64_t per_chunk_;
};

}  // namespace ddl::runtime
