// Collectives that move elements and combine none, as one table: how many elements each rank has for each other.
//
// A *block* is what one rank has for another. It lies in one piece in the buffers of both, the blocks of a sender
// (receiver) one after the other in rank order. Where all receivers get the same block of a sender, it lies there once.
//
//   broadcast   root -> all, the same block      scatter     root -> all
//   gather      all -> root, the same block      alltoall    all -> all
//   allgather   all -> all, the same block
//
// Blocks are moved a chunk at a time: the same range of elements of every block, as far as a block goes.
// Pure values, alike on every rank but for own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "runtime/src/collective/chunking.h"
#include "runtime/src/collective/request.h"

namespace ddl::runtime {

class BlockMove {
 public:
  /// What a call moves; nothing for one that combines, and for an alltoallv, whose counts no rank knows at first.
  static std::optional<BlockMove> of(const Request& request, int ranks);

  static BlockMove broadcast(int ranks, int root, std::uint64_t count);
  static BlockMove gather(int ranks, int root, std::uint64_t count);
  static BlockMove scatter(int ranks, int root, std::uint64_t count);
  static BlockMove allgather(int ranks, std::uint64_t count);
  /// counts[r]: elements of rank r's block.
  static BlockMove allgatherv(std::span<const std::uint64_t> counts);
  static BlockMove alltoall(int ranks, std::uint64_t count);
  /// counts[s * ranks + r]: elements that s has for r.
  static BlockMove alltoallv(int ranks, std::vector<std::uint64_t> counts);
  /// The input of a reduce_scatter: every rank has counts[r] elements for rank r.
  static BlockMove reduce_scatter(std::span<const std::uint64_t> counts);

  int ranks() const { return ranks_; }
  /// All receivers get the same of a sender.
  bool is_shared() const { return is_shared_; }
  std::optional<int> only_sender() const {
    return only_sender_ < 0 ? std::nullopt : std::optional<int>(only_sender_);
  }
  std::optional<int> only_receiver() const {
    return only_receiver_ < 0 ? std::nullopt : std::optional<int>(only_receiver_);
  }
  /// From now on this rank alone receives.
  void only_to(int rank) { only_receiver_ = rank; }
  /// All blocks are as long.
  bool is_even() const;
  bool sends(int rank) const { return only_sender_ < 0 || rank == only_sender_; }
  bool receives(int rank) const { return only_receiver_ < 0 || rank == only_receiver_; }
  /// One rank has the same for all.
  bool is_broadcast() const { return is_shared_ && only_sender_ >= 0 && only_receiver_ < 0; }
  /// One that receives.
  int a_receiver() const { return only_receiver_ < 0 ? 0 : only_receiver_; }
  /// How many different blocks a sender has at most.
  int blocks_per_sender() const { return is_shared_ ? 1 : ranks_; }

  /// Elements of the block of from for to; 0 if from does not send or to does not receive.
  std::uint64_t count(int from, int to) const { return sends(from) && receives(to) ? count_of(from, to) : 0; }
  /// Where the block begins in the buffer of the sender, and of the receiver, in elements; of rank ranks(): where the last
  /// one ends.
  std::uint64_t send_offset(int from, int to) const;
  std::uint64_t recv_offset(int from, int to) const;
  /// Elements of the longest block.
  std::uint64_t longest() const;

  /// What chunk number index takes of a block, if it takes per_chunk elements of each.
  ElementRange piece(int from, int to, std::uint64_t index, std::uint64_t per_chunk) const;

 private:
  enum class Counts { kOne, kPerSender, kPerReceiver, kMatrix };

  BlockMove(int ranks, Counts kind, std::vector<std::uint64_t> counts)
      : ranks_(ranks), kind_(kind), counts_(std::move(counts)) {}
  std::uint64_t count_of(int from, int to) const;

  int ranks_;
  Counts kind_;
  std::vector<std::uint64_t> counts_;
  bool is_shared_ = false;
  int only_sender_ = -1;  ///< -1: all send
  int only_receiver_ = -1;
};

/// A move in one rank's buffers; move outlives it.
struct MoveInBuffers {
  const BlockMove& move;
  std::size_t element;    ///< bytes of one
  const std::byte* send;  ///< the blocks that this rank has for others
  std::byte* recv;        ///< where it wants theirs
};

}  // namespace ddl::runtime
