#include "runtime/src/cluster/host_run.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>

#include "runtime/src/collective/element.h"
#include "runtime/src/collective/reduce_kernel.h"

namespace ddl::runtime {

void SliceBuffers::merge(Merge how, const Combine& combine) {
  if (how == Merge::kReplace) {
    value.swap(received);
    return;
  }
  std::array<const std::byte*, 2> inputs{value.data(), received.data()};
  if (how == Merge::kPeerOnLeft) std::swap(inputs[0], inputs[1]);
  reduce_chunk({combine.dtype, combine.op}, inputs, merged.data(),
               value.size() / known_element_size(combine.dtype));
  value.swap(merged);
}

void SliceBuffers::combine_all(const Stage& stage, int hosts, const Combine& combine) {
  /// Goes along the whole tree before the next block, so that it stays in a near cache.
  constexpr std::size_t kBlockBytes = 8192;
  const std::size_t element = known_element_size(combine.dtype);
  const std::size_t own_at = stage.own.first;
  const auto pairs = tree_pairs(hosts);
  for (std::size_t first = 0; first < stage.unit_bytes; first += kBlockBytes) {
    const std::size_t bytes = std::min(kBlockBytes, stage.unit_bytes - first);
    const auto at = [&](int host) {
      // The own value is merged where it stands; every other one where it was received.
      const auto index = static_cast<std::size_t>(host);
      return host == stage.own_host ? value.data() + own_at + first
                                    : received.data() + index * stage.unit_bytes + first;
    };
    for (const auto& [left, right] : pairs) {
      const std::array<const std::byte*, 2> inputs{at(left), at(right)};
      reduce_chunk({combine.dtype, combine.op}, inputs, at(left), bytes / element);
    }
    if (stage.own_host != 0) std::memcpy(at(stage.own_host), at(0), bytes);
  }
}

void HostRun::begin(Lane& lane, Route route, int hosts, const Combine& combine, std::uint64_t call,
                    std::uint64_t chunk) {
  lane_ = &lane;
  route_ = std::move(route);
  hosts_ = hosts;
  combine_ = combine;
  stage_ = 0;
  call_ = call;
  chunk_ = chunk;
  std::size_t room = 0;
  for (const Stage& stage : route_) {
    for (const Transfer& transfer : stage.transfers) {
      if (transfer.merge != Merge::kReplace) room = std::max(room, transfer.recv.first + transfer.recv.count);
    }
  }
  if (buffers_.received.size() < room) buffers_.received.resize(room);
  if (!is_done()) post();
}

SliceFrame HostRun::frame(int host, ByteRange Transfer::*direction) const {
  // The two count alike what goes one way between them, but not the stages in which it does.
  SliceFrame frame;
  frame.call = call_;
  frame.chunk = static_cast<std::uint32_t>(chunk_);
  for (std::size_t stage = 0; stage <= stage_; ++stage) {
    for (const Transfer& transfer : route_[stage].transfers) {
      const std::size_t bytes = (transfer.*direction).count;
      if (transfer.host == host && bytes > 0 && stage < stage_) ++frame.turn;
    }
  }
  return frame;
}

void HostRun::post() {
  const Stage& stage = route_[stage_];
  for (const Transfer& transfer : stage.transfers) {
    if (transfer.recv.count > 0) {
      // A value that only takes the place of what was there goes there at once.
      std::vector<std::byte>& into = transfer.merge == Merge::kReplace ? buffers_.value : buffers_.received;
      lane_->post_slice(transfer.host, frame(transfer.host, &Transfer::recv),
                        std::span(into).subspan(transfer.recv.first, transfer.recv.count), pending_);
    }
    if (transfer.send.count > 0) {
      lane_->post_slice_send(transfer.host, frame(transfer.host, &Transfer::send),
                             std::span(buffers_.value).subspan(transfer.send.first, transfer.send.count),
                             pending_);
    }
  }
}

bool HostRun::advance() {
  while (!is_done() && pending_ == 0) {
    const Stage& stage = route_[stage_];
    for (const Transfer& transfer : stage.transfers) {
      const bool merges = transfer.merge == Merge::kPeerOnLeft || transfer.merge == Merge::kPeerOnRight;
      if (merges && transfer.recv.count > 0) buffers_.merge(transfer.merge, combine_);
    }
    if (stage.combines_all) buffers_.combine_all(stage, hosts_, combine_);
    ++stage_;
    if (!is_done()) post();
  }
  return is_done();
}

}  // namespace ddl::runtime
