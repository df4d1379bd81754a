#include "runtime/src/collective/small_call.h"

#include <algorithm>
#include <cstring>

#include "runtime/src/collective/staging.h"

namespace ddl::runtime {
namespace {

/// Of a few words: a call of memcpy() takes longer.
inline void copy_few(std::byte* to, const std::byte* from, std::size_t bytes) {
  switch (bytes) {
    case 4: std::memcpy(to, from, 4); return;
    case 8: std::memcpy(to, from, 8); return;
    case 16: std::memcpy(to, from, 16); return;
    default: std::memcpy(to, from, bytes);
  }
}

}  // namespace

std::optional<SmallCall> SmallCall::of(const Request& request, Channel& channel) {
  const Call& call = request.call;
  const std::size_t size = channel.size();
  const std::size_t element = element_size(call.dtype);
  const bool is_plain = request.parts.empty() && request.contributes.empty() && !request.only_compares &&
                        !request.waits_for_all && request.element_size == element &&
                        call.memory == Memory::kCpu && call.op != DDL_ADASUM && call.prescale == 1 &&
                        call.postscale == 1;
  if (!is_plain || call.count == 0 || call.count > kMostBytes) return std::nullopt;
  SmallCall small;
  small.channel_ = &channel;
  small.call_ = call;
  small.call_.number = 0;
  small.fingerprint_ = call.fingerprint();
  small.path_ = channel.path();
  small.element_ = element;
  const std::size_t bytes = small.chunk_ = small.part_ = call.count * element;
  const std::size_t own = channel.index();
  std::size_t extent = bytes, in_place = 0;
  switch (call.kind) {
    case CallKind::kAllreduce:
      if (small.path_ != path_of(Algorithm::kWhole)) return std::nullopt;
      break;
    case CallKind::kBroadcast: small.only_sends_ = call.root == channel.index(); break;
    case CallKind::kAllgather:
      extent = size * bytes;
      in_place = own * bytes;
      break;
    case CallKind::kAlltoall:
      extent = in_place = size * bytes;
      small.has_parts_ = true;
      break;
    case CallKind::kReduceScatter:
      small.equal_count_ = request.counts[0];
      for (const std::uint64_t count : request.counts) {
        if (count != small.equal_count_) return std::nullopt;
      }
      small.part_ = small.equal_count_ * element;
      in_place = own * small.part_;
      small.has_parts_ = true;
      break;
    default: return std::nullopt;
  }
  if (small.has_parts_) small.chunk_ = std::max<std::size_t>(size - 1, 1) * small.part_;
  if (small.chunk_ > std::min(kMostBytes, channel.chunk_room(slot_use(call.kind)))) return std::nullopt;
  small.apart_ = static_cast<std::ptrdiff_t>(extent);
  small.in_place_ = call.kind == CallKind::kAllgather ? -static_cast<std::ptrdiff_t>(in_place)
                                                      : static_cast<std::ptrdiff_t>(in_place);
  return small;
}

bool SmallCall::is_repeated_by(const Call& given, const std::uint64_t* counts, const void* send,
                               const void* recv) const {
  if (given.kind != call_.kind || given.dtype != call_.dtype || given.op != call_.op ||
      given.root != call_.root)
    return false;
  if (counts != nullptr) {
    for (int i = 0; i < channel_->size(); ++i) {
      if (counts[i] != equal_count_) return false;
    }
  } else if (given.count != call_.count) {
    return false;
  }
  const auto from = reinterpret_cast<std::uintptr_t>(send), to = reinterpret_cast<std::uintptr_t>(recv);
  if (from == 0 || to == 0 || ((from | to) & (element_ - 1)) != 0) return false;
  const auto distance = static_cast<std::ptrdiff_t>(to - from);
  return distance == in_place_ || distance >= apart_ || distance <= -apart_;
}

void SmallCall::stage(const std::byte* send) const {
  std::byte* const slot = channel_->own_slot();
  const auto stage_some = [this](std::byte* to, const std::byte* from, std::size_t bytes) {
    if (chunk_ <= FlagLine::kPayloadBytes) return copy_few(to, from, bytes);
    stage_bytes(*channel_, to, from, bytes);
  };
  if (!has_parts_) return stage_some(slot, send, chunk_);
  // In the order of place_among_others(): first those for the ranks after this one.
  const std::size_t before = channel_->index() * part_, after = (channel_->size() - 1) * part_ - before;
  if (after != 0) stage_some(slot, send + before + part_, after);
  if (before != 0) stage_some(slot + after, send, before);
}

const std::byte* SmallCall::part_of(int from) const {
  const int place = has_parts_ ? place_among_others(from, channel_->index(), channel_->size()) : 0;
  return channel_->slot(from) + static_cast<std::size_t>(place) * part_;
}

void SmallCall::combine(const std::byte* send, std::byte* recv) const {
  std::array<const std::byte*, kMaxMembers> inputs;
  const int size = channel_->size(), own = channel_->index();
  for (int i = 0; i < size; ++i) {
    if (i != own) inputs[i] = part_of(i);
  }
  // The own input is nearer in the caller's buffer than in the lines that the others have taken. But a result may be
  // written over the first two inputs alone.
  const std::byte* own_input = own_part(send);
  std::array<std::byte, kMostBytes> kept;
  if (own_input == recv && own >= 2) {
    copy_few(kept.data(), own_input, part_);
    own_input = kept.data();
  }
  inputs[own] = own_input;
  reduce_chunk({call_.dtype, call_.op}, {inputs.data(), static_cast<std::size_t>(size)}, recv,
               part_ / element_);
}

void SmallCall::gather(const std::byte* send, std::byte* recv) const {
  const int own = channel_->index();
  for (int from = 0; from < channel_->size(); ++from) {
    std::byte* const to = recv + from * part_;
    const std::byte* const source = from == own ? own_part(send) : part_of(from);
    if (to != source) copy_few(to, source, part_);
  }
}

Outcome SmallCall::repeat(const std::byte* send, std::byte* recv, CallDeadline deadline) const {
  Channel& channel = *channel_;
  if (auto caught_up = channel.catch_up(deadline); !caught_up) return caught_up;
  channel.set_path(path_);
  if (auto begun = channel.begin(call_, fingerprint_, deadline, chunk_, slot_use(call_.kind)); !begun)
    return begun;
  channel.begin_sampling();
  if (call_.kind != CallKind::kBroadcast || only_sends_) stage(send);
  if (auto exchanged = only_sends_ ? channel.exchange_ahead() : channel.exchange(); !exchanged)
    return exchanged;
  if (has_op(call_.kind)) {
    combine(send, recv);
  } else if (call_.kind != CallKind::kBroadcast) {
    gather(send, recv);
  } else if (!only_sends_) {
    copy_few(recv, channel.slot(call_.root), part_);
  }
  channel.end_sampling();
  return {};
}

}  // namespace ddl::runtime
