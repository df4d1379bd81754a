// Three ways to move blocks between hosts: in slices over all lanes; from buffer to buffer if every host has one
// rank; and, for few bytes, piggybacked on the comparison of the calls.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/src/collective/block_move.h"
#include "runtime/src/collective/canonical_tree.h"
#include "runtime/src/collective/cluster_call.h"

namespace ddl::runtime {

// Collectives that move blocks (collective/block_move.h), between hosts.
//
// The data from one host to another go in one message per lane: a slice of every block that ranks of the one send to
// ranks of the other. A block that several ranks of a host receive is sent once. All pairs of hosts exchange directly
// and at the same time; only a broadcast goes along the canonical tree. Blocks between ranks of one host never leave
// it.

class ClusterMove final : public ClusterCall {
 public:
  ClusterMove(ClusterContext context, const MoveInBuffers& work);
  std::uint64_t chunks() const override { return (work_.move.longest() + per_chunk_ - 1) / per_chunk_; }
  bool needs_mesh() const override { return !work_.move.is_broadcast(); }
  void fill(std::uint64_t chunk, std::byte* input) override;
  void take_inputs(std::uint64_t chunk) override;
  Route gather(std::uint64_t chunk, SliceBuffers& buffers) override;
  void publish(std::uint64_t chunk, SliceBuffers& buffers, std::byte* result) override;
  void take(std::uint64_t chunk) override;

 private:
  /// A part of a block, from one rank to another, or to all receiving ranks of a host.
  struct Part {
    int from = 0;
    int to = 0;
    ElementRange slice;  ///< of the chunk's part of the block
    std::size_t at = 0;  ///< its offset in the bytes of its lane
    std::size_t bytes = 0;
  };

  /// Calls each(part) for all parts that go from one host to another by one lane, in the order of their offsets. at:
  /// the offset of the first. Returns the end of the last.
  template <class Each>
  std::size_t for_parts(int from_host, int to_host, std::uint64_t chunk, int lane, std::size_t at,
                        Each each) const;
  /// Calls each(part) for all parts that come from other hosts.
  template <class Each>
  std::size_t for_arriving(std::uint64_t chunk, int lane, Each each) const;
  /// Where this rank receives a chunk of another rank's block.
  std::byte* destination_of(int from, std::uint64_t chunk) const;
  /// The offset of the block for a rank in the sender's input area.
  std::size_t input_at(int to) const { return work_.move.is_shared() ? 0 : to * per_chunk_ * work_.element; }

  MoveInBuffers work_;
  int root_host_ = 0;  ///< of a broadcast
  std::uint64_t per_chunk_;
};

// Collectives that move blocks between hosts with one rank each: from buffer to buffer.
//
// Nothing is staged: a block is sent from the sender's buffer and received into the receiver's buffer. Only if both
// are the same buffer, so that received data would overwrite data that have not been sent, is the block received
// beside it.

class ClusterDirectMove final : public ClusterCall {
 public:
  /// Every rank is alone on its host.
  ClusterDirectMove(ClusterContext context, const MoveInBuffers& work);
  std::uint64_t chunks() const override { return (work_.move.longest() + per_chunk_ - 1) / per_chunk_; }
  bool needs_mesh() const override { return !work_.move.is_broadcast(); }
  std::size_t longest_slice() const override;
  void fill(std::uint64_t, std::byte*) override {}
  void take_inputs(std::uint64_t chunk) override;
  Route gather(std::uint64_t chunk, SliceBuffers& buffers) override;
  void publish(std::uint64_t chunk, SliceBuffers& buffers, std::byte* result) override;
  void take(std::uint64_t) override {}

 private:
  /// The only rank of a host.
  int rank_on(int host) const { return ranks_on(host).front(); }
  /// The bytes of a chunk's part of the block from one rank for another, in the sender's and in the receiver's
  /// buffer.
  ByteRange in_send(int from, int to, std::uint64_t chunk) const;
  ByteRange in_recv(int from, int to, std::uint64_t chunk) const;

  MoveInBuffers work_;
  bool receives_aside_;
  std::uint64_t per_chunk_;  ///< elements of every block
};

// Collectives that move so few bytes that all of them are piggybacked on the comparison of the calls.
//
// All blocks of all senders, one sender after the other, form one value of bytes, in which a host has the blocks of its
// own ranks at first. Each step of the comparison carries those that go to the partner, or through it. So the move needs
// no further steps, and only the connections along the tree. The first lane carries it.

class ClusterSmallMove final : public ClusterCall {
 public:
  /// Whether the move is small enough. The same on all ranks.
  static bool can_run(const ClusterContext& context, const BlockMove& move, std::size_t element);

  /// Only if can_run().
  ClusterSmallMove(ClusterContext context, const MoveInBuffers& work);
  std::uint64_t chunks() const override { return 1; }
  bool piggybacks_first() const override { return true; }
  std::span<const std::byte> sent_with(const TreeStep& step, SliceBuffers& buffers) override;
  std::size_t received_with(const TreeStep& step, const SliceBuffers& buffers) const override;
  void merge_received(const TreeStep& step, SliceBuffers& buffers) override;
  void fill(std::uint64_t chunk, std::byte* input) override;
  Route gather(std::uint64_t chunk, SliceBuffers& buffers) override;
  void publish(std::uint64_t chunk, SliceBuffers& buffers, std::byte* result) override;
  void take(std::uint64_t chunk) override;

 private:
  /// The bytes of all blocks of a sender.
  std::size_t bytes_of(int sender) const;
  /// each(offset, bytes) for the blocks in the value that ranks of these hosts have for ranks of those.
  template <class Each>
  void for_blocks(const TreeTraffic& traffic, Each each) const;

  MoveInBuffers work_;
  std::vector<std::size_t> offsets_;  ///< of each sender's blocks in the value
  std::vector<std::byte> packed_;     ///< what goes with a step
};

}  // namespace ddl::runtime
