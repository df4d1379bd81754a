#include "runtime/src/collective/block_move.h"

#include <algorithm>

namespace ddl::runtime {

std::optional<BlockMove> BlockMove::of(const Request& request, int ranks) {
  const Call& call = request.call;
  switch (call.kind) {
    case CallKind::kTransfer: return broadcast(ranks, call.root == request.job_ranks[0] ? 0 : 1, call.count);
    case CallKind::kBroadcast: return broadcast(ranks, call.root, call.count);
    case CallKind::kAllgather: return allgather(ranks, call.count);
    case CallKind::kAllgatherv: return allgatherv(request.counts);
    case CallKind::kGather: return gather(ranks, call.root, call.count);
    case CallKind::kScatter: return scatter(ranks, call.root, call.count);
    case CallKind::kAlltoall: return alltoall(ranks, call.count);
    default: return std::nullopt;
  }
}

BlockMove BlockMove::broadcast(int ranks, int root, std::uint64_t count) {
  BlockMove move(ranks, count);
  move.is_shared_ = true;
  move.only_sender_ = root;
  return move;
}

BlockMove BlockMove::gather(int ranks, int root, std::uint64_t count) {
  BlockMove move = allgather(ranks, count);
  move.only_receiver_ = root;
  return move;
}

BlockMove BlockMove::scatter(int ranks, int root, std::uint64_t count) {
  BlockMove move = alltoall(ranks, count);
  move.only_sender_ = root;
  return move;
}

BlockMove BlockMove::allgather(int ranks, std::uint64_t count) {
  BlockMove move(ranks, count);
  move.is_shared_ = true;
  return move;
}

BlockMove BlockMove::allgatherv(std::span<const std::uint64_t> counts) {
  BlockMove move(std::ssize(counts), Counts::kPerSender, {counts.begin(), counts.end()});
  move.is_shared_ = true;
  return move;
}

BlockMove BlockMove::alltoall(int ranks, std::uint64_t count) { return {ranks, count}; }

BlockMove BlockMove::alltoallv(int ranks, std::vector<std::uint64_t> counts) {
  return {ranks, Counts::kMatrix, std::move(counts)};
}

BlockMove BlockMove::reduce_scatter(std::span<const std::uint64_t> counts) {
  const auto differs = [&](std::uint64_t count) { return count != counts.front(); };
  if (std::none_of(counts.begin(), counts.end(), differs))
    return {static_cast<int>(counts.size()), counts.front()};
  return {static_cast<int>(counts.size()), Counts::kPerReceiver, {counts.begin(), counts.end()}};
}

std::uint64_t BlockMove::count_of(int from, int to) const {
  switch (kind_) {
    case Counts::kOne: break;
    case Counts::kPerSender: return counts_[from];
    case Counts::kPerReceiver: return counts_[to];
    case Counts::kMatrix:
      return counts_[static_cast<std::size_t>(from) * static_cast<std::size_t>(ranks_) +
                     static_cast<std::size_t>(to)];
  }
  return count_;
}

std::uint64_t BlockMove::send_offset(int from, int to) const {
  if (is_shared_) return 0;
  if (kind_ == Counts::kOne) return static_cast<std::uint64_t>(to) * count_;
  std::uint64_t offset = 0;
  for (int before = 0; before < to; ++before) offset += count(from, before);
  return offset;
}

std::uint64_t BlockMove::recv_offset(int from, int to) const {
  if (only_sender_ >= 0) return 0;
  if (kind_ == Counts::kOne) return static_cast<std::uint64_t>(from) * count_;
  std::uint64_t offset = 0;
  for (int before = 0; before < from; ++before) offset += count(before, to);
  return offset;
}

bool BlockMove::is_even() const {
  return std::all_of(counts_.begin(), counts_.end(),
                     [this](std::uint64_t count) { return count == counts_.front(); });
}

std::uint64_t BlockMove::longest() const {
  return kind_ == Counts::kOne ? count_ : *std::max_element(counts_.begin(), counts_.end());
}

ElementRange BlockMove::part(int from, int to, std::uint64_t index, std::uint64_t per_chunk) const {
  const std::uint64_t total = count(from, to);
  const std::uint64_t first = std::min(index * per_chunk, total);
  return {first, std::min(per_chunk, total - first)};
}

}  // namespace ddl::runtime
