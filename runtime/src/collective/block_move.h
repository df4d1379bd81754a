// Collectives that only move elements: how the elements are cut into chunks and slices, and how many elements each
// rank sends to each other. An alltoallv is such a move after a first one that exchanges the counts.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/src/collective/request.h"
#include "runtime/src/common/call.h"
#include "runtime/src/common/failure.h"
#include "runtime/src/common/member.h"

namespace ddl::runtime {

// How a call's elements are cut: into consecutive chunks, and each chunk into one slice per lane.

/// Consecutive elements.
struct ElementRange {
  std::uint64_t first = 0;
  std::uint64_t count = 0;
  bool operator==(const ElementRange&) const = default;
};

/// Part number part of count elements that are cut evenly into parts; some are empty if there are fewer elements than
/// parts.
inline ElementRange even_part(std::uint64_t count, int part, int parts) {
  const auto cut = [&](int at) {
    return count * static_cast<std::uint64_t>(at) / static_cast<std::uint64_t>(parts);
  };
  return {cut(part), cut(part + 1) - cut(part)};
}

struct Chunking {
  std::uint64_t total = 0;      ///< elements
  std::uint64_t per_chunk = 1;  ///< elements, at least 1
  int lanes = 1;

  std::uint64_t chunks() const { return (total + per_chunk - 1) / per_chunk; }
  /// Relative to the call's elements.
  ElementRange chunk(std::uint64_t index) const {
    const std::uint64_t first = index * per_chunk;
    return {first, std::min(per_chunk, total - first)};
  }
  /// Relative to its chunk.
  ElementRange slice(std::uint64_t index, int lane) const {
    return even_part(chunk(index).count, lane, lanes);
  }
};

// memcpy() for ranges that may be empty.

/// Allows an empty copy from or to a null pointer, and one onto itself, which does nothing.
inline void copy_bytes(std::byte* to, const std::byte* from, std::size_t bytes) {
  if (bytes != 0 && to != from) std::memcpy(to, from, bytes);
}

// Collectives that only move elements, as one table: how many elements each rank sends to each other.
//
// A *block* is the data that one rank sends to another. It is contiguous in the buffers of both, and the blocks of a
// sender (receiver) lie one after the other in rank order. If all receivers get the same block of a sender, it lies
// there once.
//
//   broadcast   root -> all, the same block      scatter     root -> all
//   gather      all -> root, the same block      alltoall    all -> all
//   allgather   all -> all, the same block
//
// Blocks are moved a chunk at a time: the same range of elements of every block, as far as a block reaches.
// Pure values, the same on every rank.

/// Which place the block for another rank has among those of its sender, which lie in the order of the receivers from the
/// sender on. So two ranks have theirs for each other at the same place.
constexpr int place_among_others(int from, int to, int ranks) {
  return to > from ? to - from - 1 : to - from - 1 + ranks;
}

class BlockMove {
 public:
  /// The move of a call; nullopt for a call that combines, and for an alltoallv, whose counts no rank knows at first.
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

  int size() const { return ranks_; }
  /// All receivers get the same block of a sender.
  bool is_shared() const { return is_shared_; }
  std::optional<int> only_sender() const {
    return only_sender_ < 0 ? std::nullopt : std::optional<int>(only_sender_);
  }
  std::optional<int> only_receiver() const {
    return only_receiver_ < 0 ? std::nullopt : std::optional<int>(only_receiver_);
  }
  /// From now on this rank alone receives.
  void only_to(int rank) { only_receiver_ = rank; }
  /// All blocks have the same length.
  bool is_even() const;
  bool sends(int rank) const { return only_sender_ < 0 || rank == only_sender_; }
  bool receives(int rank) const { return only_receiver_ < 0 || rank == only_receiver_; }
  /// One rank sends the same block to all.
  bool is_broadcast() const { return is_shared_ && only_sender_ >= 0 && only_receiver_ < 0; }
  /// A rank that receives.
  int a_receiver() const { return only_receiver_ < 0 ? 0 : only_receiver_; }
  /// The maximum number of different blocks of a sender.
  int blocks_per_sender() const { return is_shared_ ? 1 : ranks_; }
  /// The same without the sender's own block; at least 1.
  int blocks_for_others() const { return is_shared_ ? 1 : std::max(ranks_ - 1, 1); }

  /// Elements of the block of from for to; 0 if from does not send or to does not receive.
  std::uint64_t count(int from, int to) const { return sends(from) && receives(to) ? count_of(from, to) : 0; }
  /// The offset of the block in the buffer of the sender, and of the receiver, in elements. For rank size(): the end
  /// of the last block.
  std::uint64_t send_offset(int from, int to) const;
  std::uint64_t recv_offset(int from, int to) const;
  /// Elements of the longest block.
  std::uint64_t longest() const;

  /// The range of a block that is in chunk number index, if a chunk has per_chunk elements of each block.
  ElementRange part(int from, int to, std::uint64_t index, std::uint64_t per_chunk) const;

 private:
  enum class Counts { kOne, kPerSender, kPerReceiver, kMatrix };

  /// All blocks have this count. Most calls do, and need no memory for it.
  BlockMove(int ranks, std::uint64_t count) : ranks_(ranks), kind_(Counts::kOne), count_(count) {}
  BlockMove(int ranks, Counts kind, std::vector<std::uint64_t> counts)
      : ranks_(ranks), kind_(kind), counts_(std::move(counts)) {}
  std::uint64_t count_of(int from, int to) const;

  int ranks_;
  Counts kind_;
  std::uint64_t count_ = 0;            ///< for kOne
  std::vector<std::uint64_t> counts_;  ///< for the others
  bool is_shared_ = false;
  int only_sender_ = -1;  ///< -1: all send
  int only_receiver_ = -1;
};

/// A move in one rank's buffers; move outlives it.
struct MoveInBuffers {
  const BlockMove& move;
  std::size_t element;    ///< bytes of one element
  const std::byte* send;  ///< the blocks that this rank sends
  std::byte* recv;        ///< the buffer for the blocks that it receives
};

// An alltoallv: first every rank gets the counts of all others, then the blocks move.

/// own_host: this host's name. move(request, blocks) moves blocks between the request's buffers as a call; number()
/// is that of the call that was begun last, so all steps have the number of one call.
template <class Move, class Number>
Outcome alltoallv(const Request& request, int ranks, int own, const std::string& own_host, Move move,
                  Number number) {
  const auto size = static_cast<std::size_t>(ranks);
  // A rank's row: the capacity of its receive buffer, and its count for each rank.
  const std::size_t row = size + 1;
  std::vector<std::uint64_t> mine{request.recv_capacity}, rows(row * size);
  mine.insert(mine.end(), request.counts.begin(), request.counts.end());
  const auto exchange = [&](Request step, std::uint64_t count, std::size_t element_size, const void* own_part,
                            void* all) {
    step.element_size = element_size;
    step.send = static_cast<const std::byte*>(own_part);
    step.recv = static_cast<std::byte*>(all);
    return move(step, BlockMove::allgather(ranks, count));
  };
  if (auto done = exchange(request, row, sizeof(std::uint64_t), mine.data(), rows.data()); !done) return done;
  std::vector<std::uint64_t> counts;
  for (std::size_t from = 0; from < size; ++from) {
    counts.insert(counts.end(), rows.begin() + static_cast<std::ptrdiff_t>(from * row + 1),
                  rows.begin() + static_cast<std::ptrdiff_t>((from + 1) * row));
    request.recv_counts[from] = counts[from * size + static_cast<std::size_t>(own)];
  }
  for (std::size_t to = 0; to < size; ++to) {
    // Sums do not wrap: every count has been checked to fit into its sender's memory.
    std::uint64_t arriving = 0;
    for (std::size_t from = 0; from < size; ++from) arriving += counts[from * size + to];
    if (arriving > rows[to * row]) {
      // All ranks find this, so they can exchange the hosts' names for the message.
      const HostField host = HostField::of(own_host);
      std::vector<HostField> hosts(size);
      Request naming = request;
      naming.call.number = number();
      if (auto named = exchange(naming, sizeof host, 1, &host, hosts.data()); !named) return named;
      const Member lacking{request.job_ranks[to], hosts[to].str(), 0};
      return fail(DDL_ERROR_MISMATCH, "alltoallv: " + lacking.label() + " is sent " +
                                          std::to_string(arriving) + " elements but has room for " +
                                          std::to_string(rows[to * row]) + " (recv_capacity)");
    }
  }
  Request second = request;
  second.call.number = number();
  return move(second, BlockMove::alltoallv(ranks, std::move(counts)));
}

}  // namespace ddl::runtime
