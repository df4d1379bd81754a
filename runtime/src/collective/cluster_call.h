// The processing of a chunk in a job on several hosts: the part that differs between collectives.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "runtime/src/bootstrap/host_layout.h"
#include "runtime/src/collective/call_agreement.h"
#include "runtime/src/collective/slice_route.h"
#include "runtime/src/shm/channel.h"

namespace ddl::runtime {

/// What every call borrows from its Cluster, which outlives it. One struct, because the constructor of each kind of
/// call only passes it on to ClusterCall.
struct ClusterContext {
  const HostLayout& layout;
  const SlotAreas& areas;
  Channel& channel;
};

/// How many bytes are piggybacked on the comparison of the calls instead of being sent after it. If every host gets
/// only what it needs, this number of bytes in all. Otherwise a step carries at most half of it: more would take longer
/// than the further step that it saves.
inline constexpr std::size_t kMaxPiggybackBytes = std::size_t{32} << 10;
inline std::size_t max_piggyback_bytes(const ClusterContext& context) {
  return std::min(kMaxPiggybackBytes, context.areas.area_bytes);
}

class ClusterCall {
 public:
  explicit ClusterCall(ClusterContext context) : context_(context) {}
  virtual ~ClusterCall() = default;
  ClusterCall(const ClusterCall&) = delete;
  ClusterCall& operator=(const ClusterCall&) = delete;

  virtual std::uint64_t chunks() const = 0;
  /// The first chunk's complete value goes with the comparison of the calls, by the steps of an allreduce.
  virtual bool piggybacks_first() const { return false; }
  /// Its routes lead to hosts that are not neighbours in the tree.
  virtual bool needs_mesh() const { return false; }
  virtual Reduction combine() const { return {}; }
  // What of the first chunk's value goes with a step of the comparison, what comes with it, and what becomes of that. By
  // default the values of hosts are combined, so all of it goes both ways.
  virtual std::span<const std::byte> sent_with(const TreeStep&, SliceBuffers& buffers) {
    return buffers.value;
  }
  virtual std::size_t received_with(const TreeStep&, const SliceBuffers& buffers) const {
    return buffers.value.size();
  }
  virtual void merge_received(const TreeStep& step, SliceBuffers& buffers) {
    buffers.merge(step.merge, combine());
  }
  /// The maximum length of what a lane sends or receives of a chunk as one slice.
  virtual std::size_t longest_slice() const { return area_bytes(); }

  /// Every rank, before the exchange: puts its part of the chunk into its input area.
  virtual void fill(std::uint64_t chunk, std::byte* input) = 0;
  /// Every rank, after the exchange: takes its data from the ranks of its own host.
  virtual void take_inputs(std::uint64_t) {}
  /// A rank with a lane, after the exchange: makes this host's value of its slice, and returns its route.
  virtual Route gather(std::uint64_t chunk, SliceBuffers& buffers) = 0;
  /// A rank with a lane: puts the slice's result into its result area.
  virtual void publish(std::uint64_t chunk, SliceBuffers& buffers, std::byte* result) = 0;
  /// Every rank, after the next exchange: takes the chunk's result from the result areas of the lanes.
  virtual void take(std::uint64_t chunk) = 0;

  /// The chunk in the caller's buffers, if it has the layout there that fill() and publish() would make; otherwise
  /// null. A rank that is alone on its host uses these instead of its areas, so nothing is copied.
  virtual const std::byte* caller_input(std::uint64_t) const { return nullptr; }
  virtual std::byte* caller_result(std::uint64_t) const { return nullptr; }

  /// fill() and publish() to the memory from which gather() and take() read the chunk.
  void fill_area(std::uint64_t chunk) {
    own_input_ = local_size() == 1 ? caller_input(chunk) : nullptr;
    if (own_input_ == nullptr) fill(chunk, context_.areas.input(context_.channel.own_slot()));
  }
  void publish_area(std::uint64_t chunk, SliceBuffers& buffers) {
    own_result_ = local_size() == 1 ? caller_result(chunk) : nullptr;
    publish(chunk, buffers,
            own_result_ == nullptr ? context_.areas.result(context_.channel.own_slot()) : own_result_);
  }

 protected:
  const HostLayout& layout() const { return context_.layout; }
  const std::vector<int>& ranks_on(int host) const { return layout().hosts[host]; }
  int host_count() const { return layout().host_count(); }
  int own_host() const { return layout().own; }
  int own_lane() const { return context_.channel.index(); }
  /// The rank that has this local rank on this host.
  int rank_at(int local_rank) const { return layout().local()[local_rank]; }
  int own_rank() const { return rank_at(own_lane()); }
  int local_size() const { return context_.channel.size(); }
  const Channel& channel() const { return context_.channel; }
  /// The input of a local rank at the last exchange.
  const std::byte* input_of(int local_rank) const {
    if (own_input_ != nullptr) return own_input_;
    return context_.areas.input(context_.channel.slot(local_rank));
  }
  const std::byte* result_of(int lane) const {
    if (own_result_ != nullptr) return own_result_;
    return context_.areas.result(context_.channel.slot(lane));
  }
  std::size_t area_bytes() const { return context_.areas.area_bytes; }
  /// The best length of a slice if every rank is alone on its host, so that no slice lies in an area, and no host has
  /// to receive a complete slice before it forwards it.
  std::size_t unstaged_bytes() const { return 4 * area_bytes(); }

 private:
  ClusterContext context_;
  const std::byte* own_input_ = nullptr;  ///< the chunk that was filled last, in the caller's buffer
  std::byte* own_result_ = nullptr;       ///< the chunk that was published last, in the caller's buffer
};

/// A barrier: only the comparison of the calls.
class ClusterBarrier final : public ClusterCall {
 public:
  using ClusterCall::ClusterCall;
  std::uint64_t chunks() const override { return 0; }
  void fill(std::uint64_t, std::byte*) override {}
  Route gather(std::uint64_t, SliceBuffers&) override { return {}; }
  void publish(std::uint64_t, SliceBuffers&, std::byte*) override {}
  void take(std::uint64_t) override {}
};

}  // namespace ddl::runtime
