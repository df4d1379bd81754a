#include "runtime/src/backend/adasum_calls.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "runtime/src/backend/device_call.h"
#include "runtime/src/collective/block_move.h"
#include "runtime/src/device/device.h"

namespace ddl::runtime {
namespace {

static_assert(sizeof(AdasumDots) == 3 * sizeof(double), "dots are added as doubles");

/// Calls use(bytes of the tensor, bytes of the row, their number) for each slice that the tensors have in a row of a
/// block for each rank. What the last slices lack is padding.
template <class Use>
void for_slices(std::span<const Part> tensors, std::span<const std::uint64_t> slices, int ranks,
                std::uint64_t block, std::size_t element, Use use) {
  std::uint64_t in_block = 0;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    for (std::uint64_t rank = 0; rank < static_cast<std::uint64_t>(ranks); ++rank) {
      const std::uint64_t first = std::min(rank * slices[i], tensors[i].count);
      const std::uint64_t count = std::min(slices[i], tensors[i].count - first);
      use(tensors[i], first * element, (rank * block + in_block) * element, count * element,
          (slices[i] - count) * element);
    }
    in_block += slices[i];
  }
}

std::byte* at_least(std::vector<std::byte>& memory, std::size_t bytes) {
  if (memory.size() < bytes) memory.resize(bytes);
  return memory.data();
}

}  // namespace

Outcome AdasumCalls::run(const Request& request, CallDeadline deadline) {
  DDL_CHECK(request.contributes.empty(), request.call.describe());
  if (auto same = exchange_.compare(request, deadline); !same) return same;
  call_ = connections_.channel().call();
  try {
    return run_compared(request, deadline);
  } catch (const std::bad_alloc&) {
    // The others are inside the call.
    return give_up(connections_, call_, Error(ErrorCode::kSystem, "out of memory"));
  }
}

Outcome AdasumCalls::run_compared(const Request& request, CallDeadline deadline) {
  const Part whole{request.send, request.recv, request.call.count};
  const std::span<const Part> tensors =
      request.parts.empty() ? std::span<const Part>(&whole, 1) : request.parts;
  return request.device == nullptr ? combine(request, tensors, deadline)
                                   : run_on_gpu(request, tensors, deadline);
}

Outcome AdasumCalls::run_on_gpu(const Request& request, std::span<const Part> tensors,
                                CallDeadline deadline) {
  Device& device = *request.device;
  const CurrentDevice current(device);
  if (!current.status()) return give_up(connections_, call_, current.status().error());
  std::byte* next = at_least(staged_, request.call.count * request.element_size);
  std::vector<Part> staged;
  for (const Part& tensor : tensors) {
    staged.push_back({next, next, tensor.count});
    next += tensor.count * request.element_size;
  }
  // On the program's stream; if it has named events instead, on one that comes after them.
  DeviceStream own;
  DeviceEvent copied;
  const auto begin = [&]() -> Status {
    DDL_ASSIGN(event, DeviceEvent::make(device));
    copied = std::move(event);
    if (!request.has_events) return {};
    DDL_ASSIGN(stream, DeviceStream::make(device));
    own = std::move(stream);
    for (EventHandle ready : request.after) DDL_TRY(device.wait(own.get(), ready));
    return {};
  };
  if (auto begun = begin(); !begun) return give_up(connections_, call_, begun.error());
  StreamHandle const stream = request.has_events ? own.get() : request.stream;
  const auto copy = [&](bool is_down) -> Outcome {
    const auto put = [&]() -> Status {
      for (std::size_t i = 0; i < tensors.size(); ++i) {
        const std::size_t bytes = tensors[i].count * request.element_size;
        if (bytes == 0) continue;
        DDL_TRY(is_down ? device.copy(staged[i].recv, tensors[i].send, bytes, stream)
                        : device.copy(tensors[i].recv, staged[i].send, bytes, stream));
      }
      return device.record(copied.get(), stream);
    };
    if (auto done = put(); !done) return give_up(connections_, call_, done.error());
    return wait_on_cpu(device, copied.get(), stream, connections_, call_, deadline);
  };
  if (auto down = copy(true); !down) return down;
  if (auto combined = combine(request, staged, deadline); !combined) return combined;
  return copy(false);
}

Outcome AdasumCalls::combine(const Request& request, std::span<const Part> tensors, CallDeadline deadline) {
  const ddl_dtype dtype = request.dtype(), partial = partial_dtype(dtype, DDL_SUM);
  const std::size_t element = request.element_size;
  const auto size = static_cast<std::uint64_t>(ranks());
  slices_.clear();
  block_ = 0;
  for (const Part& tensor : tensors) {
    slices_.push_back((tensor.count + size - 1) / size);
    block_ += slices_.back();
  }
  if (block_ == 0) return {};

  // One tensor that the ranks share evenly is such a row already: nothing is copied.
  const bool is_row = tensors.size() == 1 && block_ * size == tensors.front().count;
  std::byte* const row = is_row ? tensors.front().recv : at_least(row_, size * block_ * element);
  if (!is_row) {
    for_slices(tensors, slices_, ranks(), block_, element,
               [&](const Part& tensor, std::size_t from, std::size_t to, std::size_t bytes, std::size_t pad) {
                 copy_bytes(row + to, tensor.send + from, bytes);
                 std::memset(row + to + bytes, 0, pad);
               });
  }
  std::byte* const gathered = at_least(gathered_, size * block_ * element);
  if (auto moved = step(make_call(CallKind::kAlltoall, block_, dtype), is_row ? tensors.front().send : row,
                        gathered, deadline);
      !moved) {
    return moved;
  }

  const Reduction scales{dtype, DDL_SUM, request.call.prescale, request.call.postscale};
  std::byte* values = gathered;
  if (partial != dtype || scales.prescale != 1.0) {
    // Doubles and floats become themselves, scaled.
    if (partial != dtype) values = at_least(wide_, size * block_ * known_element_size(partial));
    const std::byte* const inputs[] = {gathered};
    reduce_partials(scales, inputs, values, size * block_);
  }
  if (auto combined = combine_slices(partial, values, deadline); !combined) return combined;

  const auto own = static_cast<std::uint64_t>(connections_.membership().rank);
  std::byte* const result = row + own * block_ * element;
  finish_chunk(scales, values, result, block_, 1);
  if (auto moved = step(make_call(CallKind::kAllgather, block_, dtype), result, row, deadline); !moved)
    return moved;
  if (!is_row) {
    for_slices(tensors, slices_, ranks(), block_, element,
               [&](const Part& tensor, std::size_t to, std::size_t from, std::size_t bytes, std::size_t) {
                 copy_bytes(tensor.recv + to, row + from, bytes);
               });
  }
  return {};
}

Outcome AdasumCalls::combine_slices(ddl_dtype dtype, std::byte* values, CallDeadline deadline) {
  const std::size_t element = known_element_size(dtype);
  /// Calls use(left slice, right slice, elements, dots) for each tensor of each pair.
  const auto for_pairs = [&](const std::vector<std::pair<int, int>>& pairs, const auto& use) {
    auto dots = dots_.begin();
    for (const auto& [left, right] : pairs) {
      std::byte* a = values + static_cast<std::uint64_t>(left) * block_ * element;
      const std::byte* b = values + static_cast<std::uint64_t>(right) * block_ * element;
      for (const std::uint64_t count : slices_) {
        use(a, b, count, *dots++);
        a += count * element;
        b += count * element;
      }
    }
  };
  for (int distance = 1; distance < ranks(); distance *= 2) {
    const auto pairs = adasum_pairs(ranks(), distance);
    dots_.resize(pairs.size() * slices_.size());
    for_pairs(pairs, [&](const std::byte* a, const std::byte* b, std::uint64_t count, AdasumDots& dots) {
      dots = adasum_dots(dtype, a, b, count);
    });
    const Call sum = make_call(CallKind::kAllreduce, 3 * dots_.size(), DDL_FLOAT64, DDL_SUM);
    if (auto added = step(sum, dots_.data(), dots_.data(), deadline); !added) return added;
    for_pairs(pairs, [&](std::byte* a, const std::byte* b, std::uint64_t count, const AdasumDots& dots) {
      adasum_combine(dtype, dots, a, b, count);
    });
  }
  return {};
}

Outcome AdasumCalls::step(const Call& call, const void* send, void* recv, CallDeadline deadline) {
  Request request;
  request.call = call;
  request.call.number = call_.number;
  request.element_size = known_element_size(call.dtype);
  request.send = static_cast<const std::byte*>(send);
  request.recv = static_cast<std::byte*>(recv);
  request.job_ranks = connections_.job_ranks();
  Outcome outcome = host_.run(request, deadline);
  if (outcome) return outcome;
  // The program knows its call, and not this step of it.
  connections_.channel().set_call(call_);
  const AbortDomain& abort = connections_.abort();
  if (!abort.is_raised() || outcome.error().status == DDL_ERROR_TIMEOUT) return outcome;
  return fail(abort.describe(call_, true));
}

}  // namespace ddl::runtime
