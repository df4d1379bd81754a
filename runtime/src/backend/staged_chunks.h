// How a call on memory of a GPU is cut into calls on CPU memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/src/collective/block_move.h"
#include "runtime/src/collective/request.h"

namespace ddl::runtime {

/// A part of a buffer of the program's, and its place in an area of a chunk.
struct StagedRange {
  std::byte* buffer = nullptr;
  std::size_t offset = 0;
  std::size_t bytes = 0;
};

/// One chunk: what is copied into the area of inputs before the call, the call, and what is copied out of the area of
/// results after it. A call that gives each element one result has both in one area.
struct StagedChunk {
  Request request;  ///< without buffers: those are the areas
  std::vector<std::uint64_t> counts;
  std::vector<StagedRange> in;
  std::vector<StagedRange> out;
  bool is_in_place = false;
};

/// The chunks of a call: pure, and their number and the calls are the same on all ranks. An area holds the input, or
/// the result, of any chunk.
class StagedChunks {
 public:
  /// request: a call with buffers; it outlives this. blocks: of an alltoallv, whose counts are known by now.
  StagedChunks(const Request& request, int rank, int size, std::size_t area_bytes,
               std::optional<BlockMove> blocks = std::nullopt);

  /// At least 1. If it is 1, and the call is no alltoallv, then the chunk is the call itself, so no rank can begin it
  /// without the others.
  std::uint64_t count() const { return count_; }
  /// request.counts of the result points into chunk.
  void make(std::uint64_t index, StagedChunk& chunk) const;

 private:
  void make_row(std::uint64_t index, StagedChunk& chunk) const;
  void make_blocks(std::uint64_t index, StagedChunk& chunk) const;

  const Request& request_;
  int rank_;
  int size_;
  std::optional<BlockMove> blocks_;  ///< nullopt: each element has one result
  std::uint64_t per_chunk_ = 1;      ///< elements, of each block
  std::uint64_t count_ = 1;
};

}  // namespace ddl::runtime
