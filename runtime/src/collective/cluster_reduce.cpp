#include "runtime/src/collective/cluster_reduce.h"

#include <algorithm>
#include <span>

#include "runtime/src/collective/block_move.h"
#include "runtime/src/collective/reduce_kernel.h"
#include "runtime/src/collective/staging.h"

namespace ddl::runtime {
namespace {

std::size_t partial_size(const Request& request) {
  return known_element_size(partial_dtype(request.dtype(), request.call.op));
}

}  // namespace

ClusterReduce::ClusterReduce(ClusterContext context, const Request& request)
    : ClusterCall(context),
      request_(request),
      buffers_(request),
      element_(request.element_size),
      partial_(partial_size(request)),
      contributors_(request.contributors_before(layout().size())),
      algorithm_(algorithm_of(request.call, {request.call.kind, request.call.count * partial_, host_count(),
                                             layout().lane_count()})),
      chunking_{request.call.count, longest_slice() / partial_, layout().lane_count()} {
  if (request.call.kind == CallKind::kReduce) {
    root_host_ = layout().host_of(request.call.root);
    takes_here_ = root_host_ == own_host();
  } else {
    const std::vector<int>& local = layout().local();
    takes_here_ =
        std::any_of(local.begin(), local.end(), [&](int rank) { return request.contributes_data(rank); });
  }
}

std::size_t ClusterReduce::longest_slice() const {
  return algorithm_ == Algorithm::kUnits && layout().max_local_size() == 1 && !is_staged() ? unstaged_bytes()
                                                                                           : area_bytes();
}

Reduction ClusterReduce::combine() const { return merge_of(request_.reduction()); }

std::vector<std::size_t> ClusterReduce::units_of(const ElementRange& slice) const {
  std::vector<std::size_t> units;
  for (int host = 0; host < host_count(); ++host)
    units.push_back(even_part(slice.count, host, host_count()).count * partial_);
  return units;
}

Part ClusterReduce::caller_buffers(std::uint64_t chunk) const {
  const ElementRange range = chunking_.chunk(chunk);
  return request_.contributes_data(own_rank()) ? buffers_.contiguous(range.first, range.count) : Part{};
}

void ClusterReduce::fill(std::uint64_t chunk, std::byte* input) {
  if (!request_.contributes_data(own_rank())) return;
  const ElementRange range = chunking_.chunk(chunk);
  buffers_.for_parts(range.first, range.count,
                     [&](const std::byte* send, std::byte*, std::uint64_t count, std::uint64_t at) {
                       stage_bytes(channel(), input + at * element_, send, count * element_);
                     });
}

std::byte* ClusterReduce::partials_in_result(std::uint64_t chunk) const {
  // The comparison on which a value is piggybacked may find a mismatch, and recv must not have been written then.
  if (local_size() > 1 || (piggybacks_first() && chunk == 0)) return nullptr;
  const bool are_inputs =
      request_.call.prescale == 1.0 && partial_dtype(request_.dtype(), request_.call.op) == request_.dtype();
  return are_inputs ? caller_result(chunk) : nullptr;
}

Route ClusterReduce::gather(std::uint64_t chunk, SliceBuffers& buffers) {
  const ElementRange slice = chunking_.slice(chunk, own_lane());
  const std::size_t bytes = slice.count * partial_;
  if (std::byte* const result = partials_in_result(chunk)) {
    buffers.value = {result, bytes};
    copy_bytes(result, input_of(0), bytes);
  } else {
    std::vector<const std::byte*> inputs;
    for (int i = 0; i < local_size(); ++i) {
      if (request_.contributes_data(rank_at(i))) inputs.push_back(input_of(i) + slice.first * element_);
    }
    buffers.keep_value(bytes);
    reduce_host(request_.reduction(), inputs, buffers.value.data(), slice.count);
  }
  switch (algorithm_) {
    case Algorithm::kHalving:
      return route_of(halving_steps(host_count(), own_host(), static_cast<int>(slice.count), root_host_),
                      partial_);
    case Algorithm::kRing: return route_of(ring_steps(host_count(), own_host()), units_of(slice));
    case Algorithm::kUnits: break;
    default: return route_of(tree_steps(host_count(), own_host()), bytes);
  }
  const std::vector<std::size_t> units = units_of(slice);
  Stage back = allgather_stage(units, own_host());
  if (root_host_ >= 0) {
    // Only root's host receives, and only the others send.
    std::erase_if(back.transfers, [&](const Transfer& transfer) {
      return own_host() != root_host_ && transfer.host != root_host_;
    });
    for (Transfer& transfer : back.transfers) {
      (own_host() == root_host_ ? transfer.send : transfer.recv) = {};
    }
  }
  return {reduce_scatter_stage(units, own_host()), back};
}

void ClusterReduce::publish(std::uint64_t chunk, SliceBuffers& buffers, std::byte* result) {
  if (!takes_here_) return;
  const ElementRange slice = chunking_.slice(chunk, own_lane());
  stage_made(channel(), result, slice.count, element_,
             [&](std::uint64_t first, std::uint64_t count, std::byte* out) {
               finish_chunk(request_.reduction(), buffers.value.data() + first * partial_, out, count,
                            contributors_);
             });
}

void ClusterReduce::take(std::uint64_t chunk) {
  if (root_host_ >= 0 && own_rank() != request_.call.root) return;
  if (!request_.contributes_data(own_rank())) return;
  const std::uint64_t chunk_begin = chunking_.chunk(chunk).first;
  for (int lane = 0; lane < chunking_.lanes; ++lane) {
    const ElementRange slice = chunking_.slice(chunk, lane);
    const std::byte* const result = result_of(lane);
    buffers_.for_parts(chunk_begin + slice.first, slice.count,
                       [&](const std::byte*, std::byte* recv, std::uint64_t count, std::uint64_t at) {
                         copy_bytes(recv, result + at * element_, count * element_);
                       });
  }
}

ClusterReduceScatter::ClusterReduceScatter(ClusterContext context, const Request& request)
    : ClusterCall(context),
      request_(request),
      element_(request.element_size),
      partial_(partial_size(request)),
      contributors_(request.contributors_before(layout().size())),
      move_(BlockMove::reduce_scatter(request.counts)),
      per_chunk_(std::max<std::uint64_t>(
          std::min<std::uint64_t>(move_.longest(),
                                  area_bytes() / partial_ / static_cast<std::size_t>(move_.size())),
          1)),
      is_piggybacked_(chunks() == 1 &&
                      move_.send_offset(0, move_.size()) * partial_ <= max_piggyback_bytes(context) / 2) {}

std::uint64_t ClusterReduceScatter::chunks() const { return (move_.longest() + per_chunk_ - 1) / per_chunk_; }

Reduction ClusterReduceScatter::combine() const { return merge_of(request_.reduction()); }

ElementRange ClusterReduceScatter::slice_for(int rank, std::uint64_t chunk, int lane) const {
  const ElementRange part = move_.part(0, rank, chunk, per_chunk_);
  return even_part(part.count, lane, layout().lane_count());
}

void ClusterReduceScatter::fill(std::uint64_t chunk, std::byte* input) {
  if (!request_.contributes_data(own_rank())) return;
  for (int to = 0; to < move_.size(); ++to) {
    const ElementRange part = move_.part(own_rank(), to, chunk, per_chunk_);
    stage_bytes(channel(), input + to * per_chunk_ * element_,
                request_.send + (move_.send_offset(own_rank(), to) + part.first) * element_,
                part.count * element_);
  }
}

Route ClusterReduceScatter::gather(std::uint64_t chunk, SliceBuffers& buffers) {
  std::vector<std::size_t> units(static_cast<std::size_t>(host_count()), 0);
  for (int host = 0; host < host_count(); ++host) {
    for (const int to : ranks_on(host)) {
      units[host] += slice_for(to, chunk, own_lane()).count * partial_;
    }
  }
  std::size_t bytes = 0;
  for (const std::size_t unit : units) bytes += unit;
  buffers.keep_value(bytes);
  std::size_t offset = 0;
  std::vector<const std::byte*> inputs;
  for (int host = 0; host < host_count(); ++host) {
    for (const int to : ranks_on(host)) {
      const ElementRange slice = slice_for(to, chunk, own_lane());
      const std::size_t at = (to * per_chunk_ + slice.first) * element_;
      inputs.clear();
      for (int i = 0; i < local_size(); ++i) {
        if (request_.contributes_data(rank_at(i))) inputs.push_back(input_of(i) + at);
      }
      reduce_host(request_.reduction(), inputs, buffers.value.data() + offset, slice.count);
      offset += slice.count * partial_;
    }
  }
  return {reduce_scatter_stage(units, own_host())};
}

void ClusterReduceScatter::publish(std::uint64_t chunk, SliceBuffers& buffers, std::byte* result) {
  std::size_t before = 0, count = 0;
  for (int host = 0; host <= own_host(); ++host) {
    for (const int to : ranks_on(host)) {
      (host < own_host() ? before : count) += slice_for(to, chunk, own_lane()).count;
    }
  }
  stage_made(channel(), result, count, element_,
             [&](std::uint64_t first, std::uint64_t size, std::byte* out) {
               finish_chunk(request_.reduction(), buffers.value.data() + (before + first) * partial_, out,
                            size, contributors_);
             });
}

void ClusterReduceScatter::take(std::uint64_t chunk) {
  if (!request_.contributes_data(own_rank())) return;
  std::byte* to = request_.recv + move_.part(0, own_rank(), chunk, per_chunk_).first * element_;
  for (int lane = 0; lane < layout().lane_count(); ++lane) {
    std::size_t before = 0;
    for (int i = 0; i < own_lane(); ++i) {
      before += slice_for(layout().local()[i], chunk, lane).count;
    }
    const ElementRange slice = slice_for(own_rank(), chunk, lane);
    copy_bytes(to + slice.first * element_, result_of(lane) + before * element_, slice.count * element_);
  }
}

}  // namespace ddl::runtime
