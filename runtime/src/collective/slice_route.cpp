#include "runtime/src/collective/slice_route.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <span>
#include <string>

#include "base/error.h"
#include "runtime/src/collective/reduce_kernel.h"
#include "runtime/src/common/call.h"

namespace ddl::runtime {
namespace {

/// The range of each unit, if they are contiguous.
std::vector<ByteRange> laid_out(const std::vector<std::size_t>& units) {
  std::vector<ByteRange> ranges;
  std::size_t offset = 0;
  for (const std::size_t unit : units) {
    ranges.push_back({offset, unit});
    offset += unit;
  }
  return ranges;
}

/// Calls each(host) for all others, beginning with the next one, so that not all hosts send to the same one first.
template <class Each>
void for_others(int hosts, int own, Each each) {
  for (int distance = 1; distance < hosts; ++distance) each((own + distance) % hosts);
}

}  // namespace

Route route_of(const HostSteps& steps, std::size_t unit_bytes) {
  const auto bytes = [unit_bytes](const UnitRange& units) {
    return ByteRange{units.first * unit_bytes, units.count * unit_bytes};
  };
  Route route;
  for (const HostStep& step : steps) {
    route.push_back({{{step.host, bytes(step.send), bytes(step.recv), step.merge}}, false, 0, 0, {}});
  }
  return route;
}

Route route_of(const std::vector<HostSteps>& rounds, const std::vector<std::size_t>& units) {
  const auto ranges = laid_out(units);
  const auto bytes = [&ranges](const UnitRange& of) {
    return of.count == 0 ? ByteRange{} : ranges[of.first];
  };
  Route route;
  for (const HostSteps& steps : rounds) {
    Stage& stage = route.emplace_back();
    for (const HostStep& step : steps)
      stage.transfers.push_back({step.host, bytes(step.send), bytes(step.recv), step.merge});
  }
  return route;
}

Stage allgather_stage(const std::vector<std::size_t>& units, int own) {
  const auto ranges = laid_out(units);
  Stage stage;
  for_others(std::ssize(units), own, [&](int host) {
    stage.transfers.push_back({host, ranges[own], ranges[host], Merge::kReplace});
  });
  return stage;
}

Stage reduce_scatter_stage(const std::vector<std::size_t>& units, int own) {
  const auto ranges = laid_out(units);
  Stage stage;
  stage.combines_all = true;
  stage.own_host = own;
  stage.own = ranges[own];
  stage.unit_bytes = stage.own.count;
  for_others(std::ssize(units), own, [&](int host) {
    const ByteRange aside{host * stage.unit_bytes, stage.unit_bytes};
    stage.transfers.push_back({host, ranges[host], aside, Merge::kAside});
  });
  return stage;
}

namespace {

bool merges(const Transfer& transfer) {
  return transfer.recv.count > 0 &&
         (transfer.merge == Merge::kPeerOnLeft || transfer.merge == Merge::kPeerOnRight);
}

}  // namespace

void SliceBuffers::merge(Merge how, const Reduction& combine) {
  if (how == Merge::kReplace) {
    std::memcpy(value.data(), received.data(), value.size());
    return;
  }
  merge_range(how, {0, value.size()}, 0, combine);
}

void SliceBuffers::merge_range(Merge how, ByteRange range, std::size_t aside, const Reduction& combine) {
  std::byte* const own = value.data() + range.first;
  std::array<const std::byte*, 2> inputs{own, received.data() + aside};
  if (how == Merge::kPeerOnLeft) std::swap(inputs[0], inputs[1]);
  reduce_chunk(combine, inputs, own, range.count / known_element_size(combine.dtype));
}

void SliceBuffers::combine_all(const Stage& stage, int hosts, const Reduction& combine) {
  // A block goes through the complete tree before the next one, so that it stays in a near cache.
  constexpr std::size_t kBlockBytes = 8192;
  const std::size_t element = known_element_size(combine.dtype);
  const std::size_t own_at = stage.own.first;
  const auto pairs = tree_pairs(hosts);
  for (std::size_t first = 0; first < stage.unit_bytes; first += kBlockBytes) {
    const std::size_t bytes = std::min(kBlockBytes, stage.unit_bytes - first);
    const auto at = [&](int host) {
      // The own value is merged in place; every other one where it was received.
      const auto index = static_cast<std::size_t>(host);
      return host == stage.own_host ? value.data() + own_at + first
                                    : received.data() + index * stage.unit_bytes + first;
    };
    for (const auto& [left, right] : pairs) {
      const std::array<const std::byte*, 2> inputs{at(left), at(right)};
      reduce_chunk(combine, inputs, at(left), bytes / element);
    }
    if (stage.own_host != 0) std::memcpy(at(stage.own_host), at(0), bytes);
  }
}

void HostRun::begin(Lane& lane, Route route, int hosts, const Reduction& combine, std::uint64_t call,
                    std::uint64_t chunk) {
  lane_ = &lane;
  route_ = std::move(route);
  hosts_ = hosts;
  combine_ = combine;
  stage_ = 0;
  merged_ = 0;
  call_ = call;
  chunk_ = chunk;
  pending_.assign(route_.size(), 0);
  post_receives();
  if (!is_done()) post_sends();
}

SliceFrame HostRun::frame(std::size_t of_stage, int host, ByteRange Transfer::*direction) const {
  // Both ranks count the slices in one direction equally, but may have them in different stages.
  SliceFrame frame;
  frame.call = call_;
  frame.chunk = static_cast<std::uint32_t>(chunk_);
  for (std::size_t stage = 0; stage <= of_stage; ++stage) {
    for (const Transfer& transfer : route_[stage].transfers) {
      const std::size_t bytes = (transfer.*direction).count;
      if (transfer.host == host && bytes > 0 && stage < of_stage) ++frame.turn;
    }
  }
  return frame;
}

void HostRun::post_receives() {
  asides_.clear();
  std::size_t room = 0;
  for (const Stage& stage : route_) {
    for (const Transfer& transfer : stage.transfers) {
      if (merges(transfer)) {
        asides_.push_back(room);
        room += transfer.recv.count;
      } else if (transfer.merge == Merge::kAside && transfer.recv.count > 0) {
        room = std::max(room, transfer.recv.first + transfer.recv.count);
      }
    }
  }
  if (buffers_.received.empty()) buffers_.keep_received(room);
  DDL_CHECK(buffers_.received.size() >= room, std::to_string(room) + " bytes");
  auto aside = asides_.cbegin();
  for (std::size_t stage = 0; stage < route_.size(); ++stage) {
    for (const Transfer& transfer : route_[stage].transfers) {
      if (transfer.recv.count == 0) continue;
      // A value that replaces the old one is received directly there. The old value has been sent by then, because
      // the new value was computed from it.
      const std::span<std::byte> into =
          transfer.merge == Merge::kReplace ? buffers_.value : buffers_.received;
      const std::size_t first = merges(transfer) ? *aside++ : transfer.recv.first;
      lane_->post_slice(transfer.host, frame(stage, transfer.host, &Transfer::recv),
                        into.subspan(first, transfer.recv.count), pending_[stage]);
    }
  }
}

void HostRun::post_sends() {
  for (const Transfer& transfer : route_[stage_].transfers) {
    if (transfer.send.count == 0) continue;
    lane_->post_slice_send(transfer.host, frame(stage_, transfer.host, &Transfer::send),
                           buffers_.value.subspan(transfer.send.first, transfer.send.count),
                           pending_[stage_]);
  }
}

bool HostRun::advance() {
  while (!is_done() && pending_[stage_] == 0) {
    const Stage& stage = route_[stage_];
    for (const Transfer& transfer : stage.transfers) {
      if (!merges(transfer)) continue;
      buffers_.merge_range(transfer.merge, transfer.recv, asides_[merged_++], combine_);
    }
    if (stage.combines_all) buffers_.combine_all(stage, hosts_, combine_);
    ++stage_;
    if (!is_done()) post_sends();
  }
  return is_done();
}

}  // namespace ddl::runtime
