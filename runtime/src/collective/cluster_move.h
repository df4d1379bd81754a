// Three ways to move blocks between hosts: in slices over all lanes, from buffer to buffer where every host has one rank,
// and, where it is little, along with the comparison of the calls.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/src/collective/block_move.h"
#include "runtime/src/collective/cluster_call.h"

namespace ddl::runtime {

// Collectives that move blocks (collective/block_move.h), between hosts.
//
// What goes from one host to another goes in one piece a lane: a slice of every block that ranks of the one have for
// ranks of the other; a block that several ranks of a host want crosses once. All pairs of hosts exchange directly and at
// once; only a broadcast goes along the canonical tree. Blocks between ranks of one host never leave it.

class ClusterMove final : public ClusterCall {
 public:
  ClusterMove(ClusterContext context, const MoveInBuffers& work);
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
  std::byte* destination_of(int from, std::uint64_t chunk) const;
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

// Collectives that move blocks between hosts with one rank each: from buffer to buffer.
//
// Nothing is laid out or staged: a block is sent from where its sender has it, and received where its receiver wants it.
// Only where the two are the same buffer, and what comes would stand on what has still to go, is it received beside it.

class ClusterDirectMove final : public ClusterCall {
 public:
  /// Every rank is alone on its host.
  ClusterDirectMove(ClusterContext context, const MoveInBuffers& work);
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

// Collectives that move so little that all of it is piggybacked on the comparison of the calls.
//
// All blocks of all senders, one sender after the other, are one value of bytes. A host knows those of its own ranks and
// has zeros for the others, so an allreduce with a bitwise or makes the whole of it on every host: no step more than the
// comparison takes, no connection but those along the tree. The first lane carries it.

class ClusterSmallMove final : public ClusterCall {
 public:
  /// Whether it is little enough. Alike on all ranks.
  static bool serves(const ClusterContext& context, const BlockMove& move, std::size_t element);

  /// serves() it.
  ClusterSmallMove(ClusterContext context, const MoveInBuffers& work);
  std::uint64_t chunks() const override { return 1; }
  bool piggybacks_first() const override { return true; }
  Reduction combine() const override { return {DDL_UINT8, DDL_BIT_OR}; }
  void fill(std::uint64_t chunk, std::byte* input) override;
  Route gather(std::uint64_t chunk, SliceBuffers& buffers) override;
  void publish(std::uint64_t chunk, SliceBuffers& buffers, std::byte* result) override;
  void take(std::uint64_t chunk) override;

 private:
  /// Of all blocks of a sender.
  std::size_t bytes_of(int sender) const;

  const BlockMove& move_;
  std::size_t element_;
  const std::byte* send_;
  std::byte* recv_;
};

}  // namespace ddl::runtime
