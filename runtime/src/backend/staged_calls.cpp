#include "runtime/src/backend/staged_calls.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>

#include "runtime/src/backend/device_call.h"

namespace ddl::runtime {
StagedCalls::~StagedCalls() {
  if (device_ != nullptr) {
    const CurrentDevice current(*device_);
    // The last call may have returned before its copies have ended, which read the memory.
    for (const Slot& slot : slots_) {
      if (slot.is_emptying) (void)wait_for(slot.emptied, up_, CallDeadline{});
    }
    if (is_pinned_) device_->unpin(memory_);
  }
  if (heap_ != nullptr && memory_ != nullptr && own_memory_.empty())
    (void)heap_->free(memory_, connections_.abort().is_raised());
}

Outcome StagedCalls::run(const Request& request, CallDeadline deadline) {
  call_ = request.call;
  call_.number = connections_.channel().call().number + 1;
  if (request.call.kind == CallKind::kAlltoallv) return alltoallv(request, deadline);
  const Membership& membership = connections_.membership();
  const StagedChunks chunks(request, membership.rank, membership.size, area_bytes_);
  if (chunks.count() > 1) {
    if (auto same = exchange_.compare(request, deadline); !same) return same;
  }
  return run_chunks(request, chunks, chunks.count() > 1, deadline);
}

Outcome StagedCalls::alltoallv(const Request& request, CallDeadline deadline) {
  if (auto same = exchange_.compare(request, deadline); !same) return same;
  DDL_ASSIGN(blocks, exchange_.exchange_counts(request, deadline));
  const Membership& membership = connections_.membership();
  const StagedChunks chunks(request, membership.rank, membership.size, area_bytes_, std::move(blocks));
  return run_chunks(request, chunks, true, deadline);
}

Outcome StagedCalls::run_chunks(const Request& request, const StagedChunks& chunks, bool continues,
                                CallDeadline deadline) {
  if (request.device == nullptr) return run_chunks_on(nullptr, request, chunks, continues, deadline);
  const CurrentDevice current(*request.device);
  if (!current.status()) return give_up(connections_, call_, current.status().error());
  return run_chunks_on(request.device, request, chunks, continues, deadline);
}

Outcome StagedCalls::run_chunks_on(Device* device, const Request& request, const StagedChunks& chunks,
                                   bool continues, CallDeadline deadline) {
  if (auto prepared = prepare(device); !prepared) return give_up(connections_, call_, prepared.error());
  if (auto begun = begin(request); !begun) return give_up(connections_, call_, begun.error());
  std::array<StagedChunk, kSlots> at_work;
  const auto fill_chunk = [&](std::uint64_t index) -> Status {
    StagedChunk& chunk = at_work[index % kSlots];
    chunks.make(index, chunk);
    return fill(chunk, slots_[index % kSlots]);
  };
  const bool uses_gpu = device != nullptr;
  if (auto filled = fill_chunk(0); !filled) return give_up(connections_, call_, filled.error());
  for (std::uint64_t index = 0; index < chunks.count(); ++index) {
    StagedChunk& chunk = at_work[index % kSlots];
    Slot& slot = slots_[index % kSlots];
    if (uses_gpu) {
      if (auto here = wait_for(slot.filled, down_, deadline); !here) return here;
    }
    if (index + 1 < chunks.count()) {
      if (auto filled = fill_chunk(index + 1); !filled) return give_up(connections_, call_, filled.error());
    }
    if (continues && request.peer < 0) chunk.request.call.number = connections_.channel().call().number;
    if (auto done = collective(chunk, slot, deadline); !done) return done;
    if (auto emptied = empty(chunk, slot); !emptied) return give_up(connections_, call_, emptied.error());
  }
  if (!uses_gpu) return {};
  const Slot& last = slots_[(chunks.count() - 1) % kSlots];
  if (!last.is_emptying) return {};
  if (request.has_events) return wait_for(last.emptied, up_, deadline);
  if (auto ordered = device->wait(request.stream, last.emptied.get()); !ordered)
    return give_up(connections_, call_, ordered.error());
  return {};
}

Status StagedCalls::prepare(Device* device) {
  if (memory_ == nullptr) DDL_TRY(allocate());
  if (device == nullptr || device == device_) return {};
  if (device_ != nullptr) return fail(moved_to_another_gpu(*device_, *device));
  DDL_ASSIGN(down, DeviceStream::make(*device));
  DDL_ASSIGN(up, DeviceStream::make(*device));
  DDL_ASSIGN(begun, DeviceEvent::make(*device));
  for (Slot& slot : slots_) {
    DDL_ASSIGN(filled, DeviceEvent::make(*device));
    DDL_ASSIGN(emptied, DeviceEvent::make(*device));
    slot.filled = std::move(filled);
    slot.emptied = std::move(emptied);
  }
  down_ = std::move(down);
  up_ = std::move(up);
  begun_ = std::move(begun);
  DDL_TRY(device->pin(memory_, 2 * kSlots * area_bytes_));
  is_pinned_ = true;
  device_ = device;
  return {};
}

Status StagedCalls::allocate() {
  const std::size_t bytes = 2 * kSlots * area_bytes_;
  void* memory = nullptr;
  // The ranks of the host read each other's chunks there.
  if (heap_ != nullptr && heap_->exists() && heap_->allocate(bytes, memory)) {
    memory_ = static_cast<std::byte*>(memory);
  } else {
    own_memory_.resize(bytes + kLineBytes);
    const auto begin = reinterpret_cast<std::uintptr_t>(own_memory_.data());
    memory_ = own_memory_.data() + (kLineBytes - begin % kLineBytes) % kLineBytes;
  }
  for (std::size_t index = 0; index < kSlots; ++index) {
    slots_[index].in = memory_ + 2 * index * area_bytes_;
    slots_[index].out = slots_[index].in + area_bytes_;
  }
  return {};
}

Status StagedCalls::begin(const Request& request) {
  Device* const device = request.device;
  if (device == nullptr) return {};
  // A slot that the last call left may still be copied to its result; a copy of this call to the slot waits for that.
  if (request.has_events) {
    for (EventHandle event : request.after) {
      DDL_TRY(device->wait(down_.get(), event));
      DDL_TRY(device->wait(up_.get(), event));
    }
    return {};
  }
  DDL_TRY(device->record(begun_.get(), request.stream));
  DDL_TRY(device->wait(down_.get(), begun_.get()));
  return device->wait(up_.get(), begun_.get());
}

Status StagedCalls::fill(const StagedChunk& chunk, Slot& slot) {
  Device* const device = chunk.request.device;
  if (device == nullptr) {
    for (const StagedRange& range : chunk.in) copy_bytes(slot.in + range.offset, range.buffer, range.bytes);
    return {};
  }
  if (slot.is_emptying) DDL_TRY(device->wait(down_.get(), slot.emptied.get()));
  slot.is_emptying = false;
  for (const StagedRange& range : chunk.in)
    DDL_TRY(device->copy(slot.in + range.offset, range.buffer, range.bytes, down_.get()));
  return device->record(slot.filled.get(), down_.get());
}

Status StagedCalls::empty(const StagedChunk& chunk, Slot& slot) {
  Device* const device = chunk.request.device;
  const std::byte* const area = chunk.is_in_place ? slot.in : slot.out;
  if (device == nullptr) {
    for (const StagedRange& range : chunk.out) copy_bytes(range.buffer, area + range.offset, range.bytes);
    return {};
  }
  for (const StagedRange& range : chunk.out)
    DDL_TRY(device->copy(range.buffer, area + range.offset, range.bytes, up_.get()));
  DDL_TRY(device->record(slot.emptied.get(), up_.get()));
  slot.is_emptying = true;
  return {};
}

Outcome StagedCalls::collective(StagedChunk& chunk, Slot& slot, CallDeadline deadline) {
  chunk.request.send = slot.in;
  chunk.request.recv = chunk.is_in_place ? slot.in : slot.out;
  return host_.run(chunk.request, deadline);
}

}  // namespace ddl::runtime
