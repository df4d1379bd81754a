#include "runtime/src/cluster/cluster_calls.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

#include "runtime/src/collective/element.h"
#include "runtime/src/collective/reduce_kernel.h"

namespace ddl::runtime {
namespace {

/// memcpy() that allows an empty copy from or to a null pointer.
void copy_bytes(std::byte* to, const std::byte* from, std::size_t bytes) {
  if (bytes != 0) std::memcpy(to, from, bytes);
}

int ranks_of(const HostLayout& layout) {
  return std::accumulate(layout.hosts.begin(), layout.hosts.end(), 0,
                         [](int sum, const auto& ranks) { return sum + static_cast<int>(ranks.size()); });
}

/// Copies all slices of a chunk from the lanes' results to where the chunk begins.
template <class ResultOf>
void take_slices(const Chunking& chunking, std::uint64_t chunk, std::size_t element, std::byte* to,
                 ResultOf result_of) {
  for (int lane = 0; lane < chunking.lanes; ++lane) {
    const ElementRange slice = chunking.slice(chunk, lane);
    copy_bytes(to + slice.first * element, result_of(lane), slice.count * element);
  }
}

}  // namespace

ClusterAllreduce::ClusterAllreduce(ClusterPlace place, const HostSteps& steps, const std::byte* send,
                                   std::byte* recv, std::uint64_t count, ddl_dtype dtype, ddl_op op)
    : ClusterCall(place),
      steps_(steps),
      send_(send),
      recv_(recv),
      dtype_(dtype),
      op_(op),
      element_(known_element_size(dtype)),
      partial_(known_element_size(partial_dtype(dtype, op))),
      chunking_{count, area_bytes() / partial_, layout().lanes()},
      ranks_(ranks_of(layout())) {}

void ClusterAllreduce::fill(std::uint64_t chunk, std::byte* input) {
  const ElementRange range = chunking_.chunk(chunk);
  copy_bytes(input, send_ + range.first * element_, range.count * element_);
}

std::size_t ClusterAllreduce::gather(std::uint64_t chunk, SliceBuffers& buffers) {
  const ElementRange slice = chunking_.slice(chunk, own_lane());
  const std::size_t bytes = slice.count * partial_;
  buffers.resize(bytes);
  std::vector<const std::byte*> inputs;
  for (int i = 0; i < local_size(); ++i) inputs.push_back(input_of(i) + slice.first * element_);
  reduce_partials({dtype_, op_}, inputs, buffers.value.data(), slice.count);
  return bytes;
}

void ClusterAllreduce::publish(std::uint64_t chunk, SliceBuffers& buffers, std::byte* result) {
  const ElementRange slice = chunking_.slice(chunk, own_lane());
  finish_chunk({dtype_, op_}, buffers.value.data(), result, slice.count, ranks_);
}

void ClusterAllreduce::take(std::uint64_t chunk) {
  take_slices(chunking_, chunk, element_, recv_ + chunking_.chunk(chunk).first * element_,
              [this](int lane) { return result_of(lane); });
}

ClusterBroadcast::ClusterBroadcast(ClusterPlace place, int rank, std::byte* buffer, std::uint64_t count,
                                   ddl_dtype dtype, int root)
    : ClusterCall(place),
      buffer_(buffer),
      element_(known_element_size(dtype)),
      chunking_{count, area_bytes() / element_, layout().lanes()},
      is_root_(rank == root) {
  int root_host = 0;
  for (int host = 0; host < layout().host_count(); ++host) {
    const auto& ranks = layout().hosts[static_cast<std::size_t>(host)];
    if (std::binary_search(ranks.begin(), ranks.end(), root)) root_host = host;
  }
  if (root_host == layout().own) local_root_ = layout().local_rank(root);
  steps_ = broadcast_steps(layout().host_count(), layout().own, root_host);
}

void ClusterBroadcast::fill(std::uint64_t chunk, std::byte* input) {
  if (!is_root_) return;
  const ElementRange range = chunking_.chunk(chunk);
  copy_bytes(input, buffer_ + range.first * element_, range.count * element_);
}

std::size_t ClusterBroadcast::gather(std::uint64_t chunk, SliceBuffers& buffers) {
  const ElementRange slice = chunking_.slice(chunk, own_lane());
  const std::size_t bytes = slice.count * element_;
  buffers.resize(bytes);
  if (local_root_ >= 0)
    copy_bytes(buffers.value.data(), input_of(local_root_) + slice.first * element_, bytes);
  return bytes;
}

void ClusterBroadcast::publish(std::uint64_t chunk, SliceBuffers& buffers, std::byte* result) {
  copy_bytes(result, buffers.value.data(), chunking_.slice(chunk, own_lane()).count * element_);
}

void ClusterBroadcast::take(std::uint64_t chunk) {
  if (is_root_) return;
  take_slices(chunking_, chunk, element_, buffer_ + chunking_.chunk(chunk).first * element_,
              [this](int lane) { return result_of(lane); });
}

ClusterAllgather::ClusterAllgather(ClusterPlace place, const std::byte* send, std::byte* recv,
                                   std::uint64_t count, ddl_dtype dtype)
    : ClusterCall(place),
      send_(send),
      recv_(recv),
      element_(known_element_size(dtype)),
      ranks_(ranks_of(layout())) {
  chunking_ = {count, area_bytes() / element_ / static_cast<std::size_t>(ranks_), layout().lanes()};
  std::vector<int> units;
  for (int host = 0; host < layout().host_count(); ++host) {
    const auto& ranks = layout().hosts[static_cast<std::size_t>(host)];
    if (host == layout().own) first_own_unit_ = static_cast<int>(rank_of_unit_.size());
    units.push_back(static_cast<int>(ranks.size()));
    rank_of_unit_.insert(rank_of_unit_.end(), ranks.begin(), ranks.end());
  }
  steps_ = allgather_steps(units, layout().own);
}

void ClusterAllgather::fill(std::uint64_t chunk, std::byte* input) {
  const ElementRange range = chunking_.chunk(chunk);
  copy_bytes(input, send_ + range.first * element_, range.count * element_);
}

std::size_t ClusterAllgather::gather(std::uint64_t chunk, SliceBuffers& buffers) {
  const ElementRange slice = chunking_.slice(chunk, own_lane());
  const std::size_t unit = slice.count * element_;
  buffers.value.resize(static_cast<std::size_t>(ranks_) * unit);
  for (int i = 0; i < local_size(); ++i) {
    copy_bytes(buffers.value.data() + static_cast<std::size_t>(first_own_unit_ + i) * unit,
               input_of(i) + slice.first * element_, unit);
  }
  return unit;
}

void ClusterAllgather::publish(std::uint64_t, SliceBuffers& buffers, std::byte* result) {
  copy_bytes(result, buffers.value.data(), buffers.value.size());
}

void ClusterAllgather::take(std::uint64_t chunk) {
  const std::uint64_t part = chunking_.total * element_;
  for (std::size_t unit = 0; unit < rank_of_unit_.size(); ++unit) {
    std::byte* to = recv_ + static_cast<std::size_t>(rank_of_unit_[unit]) * part +
                    chunking_.chunk(chunk).first * element_;
    take_slices(chunking_, chunk, element_, to, [&](int lane) {
      return result_of(lane) + unit * chunking_.slice(chunk, lane).count * element_;
    });
  }
}

}  // namespace ddl::runtime
