#include "runtime/src/collective/host_collectives.h"

#include <algorithm>
#include <array>
#include <concepts>
#include <type_traits>

#include "runtime/src/collective/algorithm.h"
#include "runtime/src/collective/block_move.h"
#include "runtime/src/collective/parts.h"
#include "runtime/src/collective/staging.h"
#include "runtime/src/common/call.h"

namespace ddl::runtime {
namespace {

/// The inputs of ranks at the last exchange, from one offset in their slots on.
class SlotInputs {
 public:
  explicit SlotInputs(const Channel& channel) : channel_(channel) {}

  /// Those of the first ranks, which all give data.
  std::span<const std::byte* const> at(std::size_t offset, int ranks) {
    for (int i = 0; i < ranks; ++i) pointers_[i] = channel_.slot(i) + offset;
    return {pointers_.data(), static_cast<std::size_t>(ranks)};
  }
  /// Those of all ranks that give data.
  std::span<const std::byte* const> of_contributors(const Request& request, std::size_t offset) {
    if (request.contributes.empty()) return at(offset, channel_.size());
    return of_contributors(request, [offset](int) { return offset; });
  }
  /// The same, from offset(rank) on.
  template <class Offset>
    requires std::invocable<Offset, int>
  std::span<const std::byte* const> of_contributors(const Request& request, Offset offset) {
    std::size_t inputs = 0;
    for (int i = 0; i < channel_.size(); ++i) {
      if (request.contributes_data(i)) pointers_[inputs++] = channel_.slot(i) + offset(i);
    }
    return {pointers_.data(), inputs};
  }
  /// Takes the input at this position from elsewhere.
  void replace(int position, const std::byte* input) { pointers_[position] = input; }

 private:
  const Channel& channel_;
  std::array<const std::byte*, kMaxMembers> pointers_;
};

std::uint64_t chunks_of(std::uint64_t total, std::uint64_t per_chunk) {
  if (total <= per_chunk) return 1;  // a division would cost a small call much
  return std::max<std::uint64_t>((total + per_chunk - 1) / per_chunk, 1);
}

/// Runs a call whose chunks are independent of each other. fill(chunk) writes own_slot(), take(chunk) reads the
/// slots. only_sends: take() reads none on this rank, which need not wait at the last chunk.
template <class Fill, class Take>
Outcome run_in_chunks(Channel& channel, std::uint64_t chunks, Fill fill, Take take, bool only_sends = false) {
  channel.begin_sampling();
  for (std::uint64_t chunk = 0; chunk < chunks; ++chunk) {
    fill(chunk);
    const bool is_last = chunk + 1 == chunks;
    Outcome exchanged = only_sends && is_last ? channel.exchange_ahead() : channel.exchange();
    if (!exchanged) return exchanged;
    take(chunk);
  }
  channel.end_sampling();
  return {};
}

/// Copies a range of this rank's input into its slot.
template <class Buffers>
void stage_range(const Channel& channel, const Buffers& buffers, const ElementRange& range,
                 std::size_t element) {
  std::byte* const slot = channel.own_slot();
  buffers.for_parts(range.first, range.count,
                    [&](const std::byte* send, std::byte*, std::uint64_t count, std::uint64_t at) {
                      stage_bytes(channel, slot + at * element, send, count * element);
                    });
}

/// kIsOrdinary: the request has no parts, and all ranks give data. Such a call may be so small that testing for both
/// at every step would take a noticeable part of its time.
template <bool kIsOrdinary>
Outcome combine_whole(Channel& channel, const Request& request, CallDeadline deadline) {
  const std::size_t element = request.element_size;
  const std::uint64_t count = request.call.count;
  const SlotUse use = slot_use(request.call.kind);
  const std::size_t room = channel.chunk_room(use);
  const std::uint64_t per_chunk = count * element <= room ? std::max<std::uint64_t>(count, 1)
                                                          : std::max<std::uint64_t>(room / element, 1);
  if (auto begun = channel.begin(request.call, deadline, per_chunk * element, use); !begun) return begun;
  const int own = channel.index();
  const bool contributes = kIsOrdinary || request.contributes_data(own);
  const bool takes = contributes && (request.call.kind != CallKind::kReduce || own == request.call.root);
  const int inputs = request.call.kind == CallKind::kScan ? own + 1 : channel.size();
  const int position = kIsOrdinary ? own : request.contributors_before(own);
  const Reduction reduction = request.reduction();
  SlotInputs slots(channel);
  const std::conditional_t<kIsOrdinary, OneBuffer, CallBuffers> buffers(request);
  const Chunking chunking{count, per_chunk, 1};
  return run_in_chunks(
      channel, chunks_of(count, per_chunk),
      [&](std::uint64_t chunk) {
        if (contributes) stage_range(channel, buffers, chunking.chunk(chunk), element);
      },
      [&](std::uint64_t chunk) {
        if (!takes) return;
        const ElementRange range = chunking.chunk(chunk);
        buffers.for_parts(range.first, range.count,
                          [&](const std::byte* send, std::byte* recv, std::uint64_t size, std::uint64_t at) {
                            const auto chosen = kIsOrdinary ? slots.at(at * element, inputs)
                                                            : slots.of_contributors(request, at * element);
                            // The own input is nearer in the caller's buffer, unless the result overwrites it
                            // before it is read.
                            if (send != recv || position < 2) slots.replace(position, send);
                            reduce_chunk(reduction, chosen, recv, size);
                          });
      });
}

/// For an allreduce or a reduce.
Outcome combine_slices(Channel& channel, const Request& request, CallDeadline deadline) {
  // A slot is an input area and a result area, which holds the slice that this rank has reduced.
  const std::size_t element = request.element_size;
  const SlotUse use = slot_use(request.call.kind);
  const std::size_t max_area = channel.chunk_room(use) / 2 / kLineBytes * kLineBytes;
  const std::size_t input_bytes = std::max<std::size_t>(request.call.count * element, 1);
  const std::size_t area = std::min(max_area, (input_bytes + kLineBytes - 1) / kLineBytes * kLineBytes);
  const Chunking chunking{request.call.count, area / element, channel.size()};
  if (auto begun = channel.begin(request.call, deadline, 2 * area, use); !begun) return begun;
  const bool contributes = request.contributes_data(channel.index());
  const bool takes =
      contributes && (request.call.kind != CallKind::kReduce || channel.index() == request.call.root);
  const Reduction reduction = request.reduction();
  SlotInputs slots(channel);
  const CallBuffers buffers(request);
  channel.begin_sampling();
  // Round r publishes the inputs of chunk r and the slices of chunk r - 1.
  for (std::uint64_t round = 0; round <= chunking.chunks(); ++round) {
    if (round < chunking.chunks() && contributes)
      stage_range(channel, buffers, chunking.chunk(round), element);
    if (auto exchanged = channel.exchange(); !exchanged) return exchanged;
    if (round < chunking.chunks()) {
      const ElementRange slice = chunking.slice(round, channel.index());
      stage_made(channel, channel.own_slot() + area, slice.count, element,
                 [&](std::uint64_t first, std::uint64_t count, std::byte* out) {
                   reduce_chunk(reduction, slots.of_contributors(request, (slice.first + first) * element),
                                out, count);
                 });
    }
    if (round == 0 || !takes) continue;
    const std::uint64_t chunk_begin = chunking.chunk(round - 1).first;
    for (int i = 0; i < channel.size(); ++i) {
      const ElementRange slice = chunking.slice(round - 1, i);
      const std::byte* const result = channel.slot(i) + area;
      buffers.for_parts(chunk_begin + slice.first, slice.count,
                        [&](const std::byte*, std::byte* recv, std::uint64_t count, std::uint64_t at) {
                          copy_bytes(recv, result + at * element, count * element);
                        });
    }
  }
  channel.end_sampling();
  return {};
}

/// The chunks of a move with one sender: for smaller ones the exchange would cost more than the overlap saves, and of
/// larger ones the caches of the senders' and the receivers' cores do not have enough.
constexpr std::size_t kSingleSendersChunk = std::size_t{32} << 10;
constexpr std::size_t kSingleSendersLargest = std::size_t{128} << 10;

/// How the blocks of a move for other ranks are laid out in a slot: each has the room of the longest part.
struct SlotGrid {
  std::uint64_t per_chunk = 1;  ///< elements of each block
  std::size_t stride = 0;       ///< bytes from one block to the next

  static SlotGrid of(const BlockMove& move, std::size_t slot_bytes, std::size_t element) {
    const auto blocks = static_cast<std::uint64_t>(move.blocks_for_others());
    const std::size_t longest_bytes = move.longest() * element;
    // One chunk. The divisions below would cost a small call much.
    if (longest_bytes <= kSingleSendersChunk && longest_bytes * blocks <= slot_bytes)
      return {std::max<std::uint64_t>(move.longest(), 1), std::max(longest_bytes, element)};
    const std::uint64_t room = slot_bytes / element / blocks;
    DDL_CHECK(room > 0, std::to_string(slot_bytes));
    std::uint64_t wanted = move.longest();
    // If one rank sends and the others wait, these process the first chunk while it copies the second.
    if (move.only_sender())
      wanted = std::clamp<std::uint64_t>((wanted + 3) / 4, kSingleSendersChunk / element,
                                         kSingleSendersLargest / element);
    const std::uint64_t per_chunk = std::max<std::uint64_t>(std::min({move.longest(), wanted, room}), 1);
    return {per_chunk, per_chunk * element};
  }
  std::size_t bytes(const BlockMove& move) const {
    return stride * static_cast<std::size_t>(move.blocks_for_others());
  }
  std::size_t offset(const BlockMove& move, int from, int to) const {
    return move.is_shared() ? 0
                            : static_cast<std::size_t>(place_among_others(from, to, move.size())) * stride;
  }
};

/// Copies this rank's parts of a chunk into its slot, except those that no other rank reads.
void fill_blocks(Channel& channel, const BlockMove& move, const SlotGrid& grid, std::size_t element,
                 const std::byte* send, std::uint64_t chunk) {
  const int own = channel.index();
  for (int to = 0; to < move.size(); ++to) {
    if (to == own && !move.is_shared()) continue;
    const ElementRange part = move.part(own, to, chunk, grid.per_chunk);
    if (part.count == 0) continue;
    stage_bytes(channel, channel.own_slot() + grid.offset(move, own, to),
                send + (move.send_offset(own, to) + part.first) * element, part.count * element);
    if (move.is_shared()) return;
  }
}

Outcome move_blocks(Channel& channel, const Request& request, const BlockMove& move, CallDeadline deadline) {
  const std::size_t element = request.element_size;
  const std::byte* const send = request.send;
  std::byte* const recv = request.recv;
  const SlotUse use = slot_use(request.call.kind);
  const SlotGrid grid = SlotGrid::of(move, channel.chunk_room(use), element);
  if (auto begun = channel.begin(request.call, deadline, grid.bytes(move), use); !begun) return begun;
  const int own = channel.index();
  return run_in_chunks(
      channel, chunks_of(move.longest(), grid.per_chunk),
      [&](std::uint64_t chunk) { fill_blocks(channel, move, grid, element, send, chunk); },
      [&](std::uint64_t chunk) {
        for (int from = 0; from < move.size(); ++from) {
          const ElementRange part = move.part(from, own, chunk, grid.per_chunk);
          if (part.count == 0) continue;
          std::byte* const to = recv + (move.recv_offset(from, own) + part.first) * element;
          const std::byte* const source = from == own
                                              ? send + (move.send_offset(own, own) + part.first) * element
                                              : channel.slot(from) + grid.offset(move, from, own);
          copy_bytes(to, source, part.count * element);
        }
      },
      request.call.kind == CallKind::kBroadcast && own == request.call.root && !request.waits_for_all);
}

Outcome reduce_scatter(Channel& channel, const Request& request, const BlockMove& move,
                       CallDeadline deadline) {
  const std::size_t element = request.element_size;
  const SlotUse use = slot_use(request.call.kind);
  const SlotGrid grid = SlotGrid::of(move, channel.chunk_room(use), element);
  if (auto begun = channel.begin(request.call, deadline, grid.bytes(move), use); !begun) return begun;
  const int own = channel.index();
  const bool contributes = request.contributes_data(own);
  SlotInputs slots(channel);
  const int position = request.contributors_before(own);
  // In place, the result may be written over the first two inputs alone, as each element is read.
  const bool keeps_input = position >= 2 && request.send != nullptr &&
                           request.recv == request.send + move.send_offset(own, own) * element;
  std::vector<std::byte> kept(keeps_input ? grid.stride : 0);
  return run_in_chunks(
      channel, chunks_of(move.longest(), grid.per_chunk),
      [&](std::uint64_t chunk) {
        if (contributes) fill_blocks(channel, move, grid, element, request.send, chunk);
      },
      [&](std::uint64_t chunk) {
        const ElementRange part = move.part(own, own, chunk, grid.per_chunk);
        if (!contributes || part.count == 0) return;
        std::byte* const out = request.recv + part.first * element;
        const std::byte* const input = request.send + (move.send_offset(own, own) + part.first) * element;
        const auto inputs = slots.of_contributors(
            request, [&](int from) { return from == own ? 0 : grid.offset(move, from, own); });
        if (keeps_input) copy_bytes(kept.data(), input, part.count * element);
        slots.replace(position, keeps_input ? kept.data() : input);
        reduce_chunk(request.reduction(), inputs, out, part.count);
      });
}

Outcome compare(Channel& channel, const Call& call, CallDeadline deadline) {
  if (auto begun = channel.begin(call, deadline, 0); !begun) return begun;
  return channel.exchange();
}

/// A call by way of the channel's slots. blocks: those of a call that moves elements, or gives each rank a part of
/// the result; null for others.
Outcome run_staged(Channel& channel, const Request& request, const BlockMove* blocks, CallDeadline deadline) {
  if (blocks != nullptr) {
    return request.call.kind == CallKind::kReduceScatter ? reduce_scatter(channel, request, *blocks, deadline)
                                                         : move_blocks(channel, request, *blocks, deadline);
  }
  const std::size_t bytes = request.call.count * request.element_size;
  const Algorithm algorithm = algorithm_of(request.call, {request.call.kind, bytes, 1, channel.size()});
  // Slices need space for an input and a result in a slot.
  const bool has_slices = algorithm == Algorithm::kSlices && channel.slot_bytes() >= 2 * kLineBytes;
  channel.set_path(path_of(has_slices ? algorithm : Algorithm::kWhole));
  if (has_slices) return combine_slices(channel, request, deadline);
  return request.parts.empty() && request.contributes.empty()
             ? combine_whole<true>(channel, request, deadline)
             : combine_whole<false>(channel, request, deadline);
}

}  // namespace

Outcome run_on_one_host(Channel& channel, const Request& request, CallDeadline deadline) {
  // What the ranks published at the last exchange also says which of the ways below are open.
  if (auto caught_up = channel.catch_up(deadline); !caught_up) return caught_up;
  channel.set_path(Path::kBlocks);
  if (request.only_compares) return compare(channel, request.call, deadline);
  std::optional<BlockMove> moved;
  switch (request.call.kind) {
    case CallKind::kMakeSets:
    case CallKind::kAgree:
    case CallKind::kTimeline:
    case CallKind::kBarrier: return compare(channel, request.call, deadline);
    case CallKind::kAlltoallv:
      return alltoallv(
          request, channel.size(), channel.index(), channel.self().host,
          [&](const Request& part, const BlockMove& blocks) {
            return move_blocks(channel, part, blocks, deadline);
          },
          [&] { return channel.call().number; });
    case CallKind::kScan: return run_staged(channel, request, nullptr, deadline);
    case CallKind::kAllreduce:
    case CallKind::kReduce: break;
    case CallKind::kReduceScatter: moved = BlockMove::reduce_scatter(request.counts); break;
    default:
      moved = BlockMove::of(request, channel.size());
      DDL_CHECK(moved.has_value(), request.call.describe());
  }
  const BlockMove* const blocks = moved ? &*moved : nullptr;
  if (!may_be_direct(channel, request, blocks)) return run_staged(channel, request, blocks, deadline);
  Request direct = request;
  if (auto done = try_direct(channel, direct, blocks, deadline)) {
    channel.set_path(Path::kHeap);
    return *std::move(done);
  }
  return run_staged(channel, direct, blocks, deadline);
}

}  // namespace ddl::runtime
