#include "runtime/src/backend/staged_chunks.h"

#include <algorithm>

#include "runtime/src/collective/parts.h"

namespace ddl::runtime {
namespace {

/// Whether each element has one result, in the same place.
bool has_one_result(CallKind kind) {
  return kind == CallKind::kAllreduce || kind == CallKind::kReduce || kind == CallKind::kScan ||
         kind == CallKind::kBroadcast || kind == CallKind::kTransfer;
}

std::byte* writable(const std::byte* buffer) { return const_cast<std::byte*>(buffer); }

}  // namespace

StagedChunks::StagedChunks(const Request& request, int rank, int size, std::size_t area_bytes,
                           std::optional<BlockMove> blocks)
    : request_(request), rank_(rank), size_(size), blocks_(std::move(blocks)) {
  const std::uint64_t area = area_bytes / request.element_size;
  std::uint64_t longest = request.call.count;
  if (has_one_result(request.call.kind)) {
    per_chunk_ = area;
  } else {
    if (request.call.kind == CallKind::kReduceScatter) blocks_ = BlockMove::reduce_scatter(request.counts);
    if (!blocks_) blocks_ = BlockMove::of(request, size);
    DDL_CHECK(blocks_.has_value(), request.call.describe());
    per_chunk_ = std::max<std::uint64_t>(area / static_cast<std::uint64_t>(size), 1);
    longest = blocks_->longest();
  }
  count_ = std::max<std::uint64_t>((longest + per_chunk_ - 1) / per_chunk_, 1);
}

void StagedChunks::make(std::uint64_t index, StagedChunk& chunk) const {
  chunk.in.clear();
  chunk.out.clear();
  chunk.request = request_;
  chunk.request.send = nullptr;
  chunk.request.recv = nullptr;
  chunk.request.parts = {};
  chunk.is_in_place = !blocks_;
  blocks_ ? make_blocks(index, chunk) : make_row(index, chunk);
}

void StagedChunks::make_row(std::uint64_t index, StagedChunk& chunk) const {
  const std::size_t element = request_.element_size;
  const std::uint64_t first = index * per_chunk_;
  const std::uint64_t count = std::min(per_chunk_, request_.call.count - first);
  chunk.request.call.count = count;
  const CallKind kind = request_.call.kind;
  const bool is_root = !has_root(kind) || request_.call.root == rank_;
  const bool moves_from_root = kind == CallKind::kBroadcast || kind == CallKind::kTransfer;
  const bool contributes = request_.contributes_data(rank_) && (!moves_from_root || is_root);
  const bool takes = request_.contributes_data(rank_) && (moves_from_root ? !is_root : is_root);
  if (!contributes && !takes) return;
  CallBuffers(request_).for_parts(
      first, count, [&](const std::byte* send, std::byte* recv, std::uint64_t elements, std::uint64_t at) {
        if (contributes) chunk.in.push_back({writable(send), at * element, elements * element});
        if (takes) chunk.out.push_back({recv, at * element, elements * element});
      });
}

void StagedChunks::make_blocks(std::uint64_t index, StagedChunk& chunk) const {
  const std::size_t element = request_.element_size;
  const CallKind kind = request_.call.kind;
  const BlockMove& blocks = *blocks_;
  const auto chunk_of = [&](int from, int to) { return blocks.part(from, to, index, per_chunk_); };
  const bool contributes = request_.contributes_data(rank_);

  std::size_t at = 0;
  for (int to = 0; contributes && to < size_; ++to) {
    // The block that all receivers get is there once.
    const int receiver = blocks.is_shared() ? blocks.a_receiver() : to;
    const ElementRange range = chunk_of(rank_, receiver);
    const std::size_t bytes = range.count * element;
    if (bytes > 0) {
      const std::uint64_t offset = blocks.send_offset(rank_, receiver) + range.first;
      chunk.in.push_back({writable(request_.send) + offset * element, at, bytes});
    }
    at += bytes;
    if (blocks.is_shared()) break;
  }
  at = 0;
  const bool combines = kind == CallKind::kReduceScatter;
  for (int from = combines ? rank_ : 0; contributes && from < (combines ? rank_ + 1 : size_); ++from) {
    const ElementRange range = chunk_of(from, rank_);
    const std::size_t bytes = range.count * element;
    if (bytes > 0) {
      const std::uint64_t offset = combines ? 0 : blocks.recv_offset(from, rank_);
      chunk.out.push_back({request_.recv + (offset + range.first) * element, at, bytes});
    }
    at += bytes;
  }

  Call& call = chunk.request.call;
  if (kind == CallKind::kAlltoallv) {
    chunk.counts.assign(static_cast<std::size_t>(2 * size_), 0);
    for (int rank = 0; rank < size_; ++rank) chunk.counts[rank] = chunk_of(rank_, rank).count;
    chunk.request.counts = std::span(chunk.counts).first(static_cast<std::size_t>(size_));
    chunk.request.recv_capacity = at / element;
    // Nobody reads it: the numbers are known.
    chunk.request.recv_counts = chunk.counts.data() + size_;
    return;
  }
  if (count_ == 1) return;
  if (kind != CallKind::kReduceScatter && kind != CallKind::kAllgatherv) {
    call.count = std::min(per_chunk_, call.count - index * per_chunk_);
    return;
  }
  chunk.counts.clear();
  call.count = 0;
  for (int rank = 0; rank < size_; ++rank) {
    chunk.counts.push_back(combines ? chunk_of(rank, rank).count : chunk_of(rank, blocks.a_receiver()).count);
    call.count += chunk.counts.back();
  }
  chunk.request.counts = chunk.counts;
  call.counts = digest_of(chunk.counts) | 1;
}

}  // namespace ddl::runtime
