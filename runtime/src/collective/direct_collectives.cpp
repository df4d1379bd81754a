// The collectives of one host on buffers that lie in the shared heap: nothing is staged.
#include <algorithm>
#include <array>
#include <vector>

#include "runtime/src/collective/block_move.h"
#include "runtime/src/collective/host_collectives.h"
#include "runtime/src/common/call.h"

namespace ddl::runtime {
namespace {

/// Smaller calls are staged: for them the exchange of addresses costs more than is gained.
constexpr std::size_t kDirectFrom = std::size_t{16} << 10;
/// The block that is reduced and then copied to all: it stays in the L1 or L2 cache.
constexpr std::size_t kBlockBytes = std::size_t{16} << 10;

constexpr std::uint64_t kNotInHeap = ~std::uint64_t{0};

/// The offsets of a rank's buffers in the heap.
struct HeapOffsets {
  std::uint64_t send = kNotInHeap;
  std::uint64_t recv = kNotInHeap;
};

std::uint64_t offset_in(const SharedHeap& heap, const void* memory, std::size_t bytes) {
  return heap.offset_of(memory, bytes).value_or(kNotInHeap);
}

/// The offsets of this rank's buffers, as far as other ranks access them.
HeapOffsets own_offsets(const Channel& channel, const Request& request, const BlockMove* blocks) {
  const SharedHeap& heap = channel.heap();
  const std::size_t element = request.element_size;
  const int own = channel.index();
  if (blocks == nullptr) {
    const std::size_t bytes = request.call.count * element;
    return {offset_in(heap, request.send, bytes), offset_in(heap, request.recv, bytes)};
  }
  std::uint64_t sent = blocks->is_shared() ? blocks->count(own, blocks->a_receiver())
                                           : blocks->send_offset(own, blocks->size());
  return {offset_in(heap, request.send, sent * element), offset_in(heap, request.recv, 0)};
}

/// Whether all buffers that other ranks must access lie in the heap.
bool all_reachable(const std::vector<HeapOffsets>& offsets, const Request& request, const BlockMove* blocks) {
  for (int rank = 0; rank < std::ssize(offsets); ++rank) {
    const HeapOffsets& buffers = offsets[rank];
    const bool sends = blocks == nullptr || blocks->sends(rank);
    const bool is_pushed_to =
        blocks == nullptr && (request.call.kind != CallKind::kReduce || rank == request.call.root);
    if (sends && buffers.send == kNotInHeap) return false;
    if (is_pushed_to && buffers.recv == kNotInHeap) return false;
    // Data that others have not read yet would be overwritten.
    if (request.call.kind == CallKind::kAlltoall && buffers.send == buffers.recv) return false;
  }
  return true;
}

/// Allreduce and reduce.
void push_slice(Channel& channel, const Request& request, const std::vector<HeapOffsets>& offsets) {
  const SharedHeap& heap = channel.heap();
  const std::size_t element = request.element_size;
  const auto own = static_cast<std::size_t>(channel.index());
  // Slices begin on cache lines, if the buffers do, so that no two ranks write the same line.
  const std::uint64_t per_line = kLineBytes / element;
  const std::uint64_t lines = (request.call.count + per_line - 1) / per_line;
  const auto cut = [&](std::size_t at) {
    return std::min<std::uint64_t>(lines * at / offsets.size() * per_line, request.call.count);
  };
  std::vector<const std::byte*> inputs(offsets.size());
  std::vector<std::size_t> targets;
  for (std::size_t rank = 0; rank < offsets.size(); ++rank) {
    if (request.call.kind != CallKind::kReduce || static_cast<int>(rank) == request.call.root)
      targets.push_back(rank);
  }
  // The result is combined into one target and copied from there to the others: preferably the own one, which is
  // nearest. The result may overwrite the first two inputs while they are read; in place, a later input must not
  // change before it has been read.
  const auto can_take = [&](std::size_t rank) {
    return rank < 2 || offsets[rank].send != offsets[rank].recv;
  };
  std::stable_partition(targets.begin(), targets.end(), [own](std::size_t rank) { return rank == own; });
  std::stable_partition(targets.begin(), targets.end(), can_take);
  const bool goes_through_block = !can_take(targets.front());
  alignas(kLineBytes) std::array<std::byte, kBlockBytes> block;
  const std::uint64_t per_block = kBlockBytes / element;
  for (std::uint64_t first = cut(own); first < cut(own + 1); first += per_block) {
    const std::uint64_t count = std::min(per_block, cut(own + 1) - first);
    const std::size_t offset = first * element;
    for (std::size_t rank = 0; rank < offsets.size(); ++rank)
      inputs[rank] = heap.at(offsets[rank].send) + offset;
    std::byte* const result =
        goes_through_block ? block.data() : heap.at(offsets[targets.front()].recv) + offset;
    reduce_chunk(request.reduction(), inputs, result, count);
    for (const std::size_t rank : targets)
      copy_bytes(heap.at(offsets[rank].recv) + offset, result, count * element);
    channel.pass(FaultPoint::kInDirect);
  }
}

void pull_blocks(Channel& channel, const Request& request, const BlockMove& blocks,
                 const std::vector<HeapOffsets>& offsets) {
  const std::size_t element = request.element_size;
  const int own = channel.index();
  for (int distance = 0; distance < blocks.size(); ++distance) {
    // So that not all ranks read from the same one first.
    const int from = (own + distance) % blocks.size();
    const std::uint64_t count = blocks.count(from, own);
    if (count == 0) continue;
    const std::byte* const source =
        channel.heap().at(offsets[from].send) + blocks.send_offset(from, own) * element;
    copy_bytes(request.recv + blocks.recv_offset(from, own) * element, source, count * element);
    channel.pass(FaultPoint::kInDirect);
  }
}

void reduce_own_part(Channel& channel, const Request& request, const BlockMove& blocks,
                     const std::vector<HeapOffsets>& offsets) {
  const std::size_t element = request.element_size;
  const std::size_t begin = blocks.send_offset(0, channel.index()) * element;
  const std::uint64_t total = blocks.count(0, channel.index());
  std::vector<const std::byte*> inputs(offsets.size());
  alignas(kLineBytes) std::array<std::byte, kBlockBytes> block;
  const std::uint64_t per_block = kBlockBytes / element;
  for (std::uint64_t first = 0; first < total; first += per_block) {
    const std::uint64_t count = std::min(per_block, total - first);
    for (std::size_t rank = 0; rank < offsets.size(); ++rank) {
      inputs[rank] = channel.heap().at(offsets[rank].send) + begin + first * element;
    }
    reduce_chunk(request.reduction(), inputs, block.data(), count);
    copy_bytes(request.recv + first * element, block.data(), count * element);
    channel.pass(FaultPoint::kInDirect);
  }
}

}  // namespace

bool may_be_direct(const Channel& channel, const Request& request, const BlockMove* blocks) {
  const std::uint64_t largest = blocks == nullptr ? request.call.count : blocks->longest();
  return channel.size() > 1 && largest * request.element_size >= kDirectFrom &&
         channel.slot_bytes() > FlagLine::kPayloadBytes && channel.somebody_uses_heap() &&
         request.parts.empty() && request.contributes.empty();
}

std::optional<Outcome> try_direct(Channel& channel, Request& request, const BlockMove* blocks,
                                  CallDeadline deadline) {
  if (auto begun = channel.begin(request.call, deadline, channel.slot_bytes()); !begun) return begun;
  request.call.number = channel.call().number;
  const HeapOffsets own = own_offsets(channel, request, blocks);
  channel.show({{own.send, own.recv}});
  if (auto same = channel.exchange(); !same) return same;
  std::vector<HeapOffsets> offsets;
  for (int rank = 0; rank < channel.size(); ++rank) {
    const Channel::Note note = channel.note_of(rank);
    offsets.push_back({note.words[0], note.words[1]});
  }
  if (!all_reachable(offsets, request, blocks)) return std::nullopt;
  channel.pass(FaultPoint::kBeforeDirect);
  if (blocks == nullptr) {
    push_slice(channel, request, offsets);
  } else if (request.call.kind == CallKind::kReduceScatter) {
    reduce_own_part(channel, request, *blocks, offsets);
  } else {
    pull_blocks(channel, request, *blocks, offsets);
  }
  return channel.synchronize();
}

}  // namespace ddl::runtime
