#include "runtime/src/backend/device_backend.h"

#include <algorithm>
#include <bit>

#include "runtime/src/backend/nccl/fused_parts.h"
#include "runtime/src/device/device_runtimes.h"

namespace ddl::runtime {
namespace {

tl::unexpected<Failure> invalid_place(std::string message) {
  return fail(DDL_ERROR_INVALID_ARGUMENT, std::move(message));
}

std::string where(const std::optional<FoundMemory>& found) {
  return found ? "in memory of GPU " + std::to_string(found->memory.ordinal) : "in CPU memory";
}

}  // namespace

tl::expected<BufferPlace, Failure> place_of(const void* send, const void* recv, StreamHandle stream) {
  if (stream == nullptr && !may_be_on_gpu(send, recv)) return BufferPlace{};
  const void* const first = send != nullptr ? send : recv;
  if (first == nullptr) return BufferPlace{stream == nullptr ? Memory::kCpu : Memory::kDevice, nullptr};
  const auto found = find_device_memory(first);
  if (recv != nullptr && recv != first) {
    const auto other = find_device_memory(recv);
    const bool same =
        found.has_value() == other.has_value() &&
        (!found || (found->runtime == other->runtime && found->memory.ordinal == other->memory.ordinal));
    if (!same)
      return invalid_place("send lies " + where(found) + ", and recv " + where(other) +
                           "; both must lie in the same memory");
  }
  if (!found && stream != nullptr)
    return invalid_place("a stream is given, but the buffers lie in CPU memory");
  if (!found) return BufferPlace{};
  DDL_ASSIGN(device, found->runtime->device(found->memory.ordinal).map_error(to_failure));
  const CurrentDevice current(*device);
  if (!current.status()) return fail(to_failure(current.status().error()));
  DDL_ASSIGN(captures, device->is_capturing(stream).map_error(to_failure));
  if (captures) {
    return fail(DDL_ERROR_UNSUPPORTED, std::string("the stream records a ") + found->runtime->name() +
                                           " graph, which cannot hold a call of libddl");
  }
  return BufferPlace{Memory::kDevice, device};
}

Outcome place_buffers(Request& request, int rank, int size, StreamHandle stream) {
  if (request.call.kind == CallKind::kBarrier) {
    return stream == nullptr ? Outcome() : invalid_place("a barrier has no buffers, so it takes no stream");
  }
  if (stream == nullptr && !may_be_on_gpu(request.send, request.recv)) return {};
  UsedBuffers used = used_buffers(request, rank, size);
  // A rank without elements may still have buffers, by which it is like the others.
  if (stream == nullptr && used.send == nullptr && used.recv == nullptr) used = {request.send, request.recv};
  DDL_ASSIGN(place, place_of(used.send, used.recv, stream));
  request.call.memory = place.memory;
  request.device = place.device;
  request.stream = stream;
  return {};
}

std::string explain_device_choices() {
  const auto kib = [](std::size_t bytes) { return std::to_string(bytes >> 10) + " KiB"; };
  return "memory of GPUs: staged through CPU memory, in chunks of " + kib(kUsualGpuChunkBytes) +
         "\n"
         "memory of GPUs, one host, up to " +
         std::to_string(CombinationArguments::kMost) +
         " ranks that share one GPU: ipc, but for scans and transfers\n"
         "memory of GPUs, ranks with a GPU each and one version of NCCL or RCCL: nccl, but for scans, for "
         "bit and "
         "logical operations, for reductions of bool, of 16-bit integers and of 8-bit floats that not all "
         "GPUs have, and for averages and factors of "
         "integers\n"
         "memory of GPUs, allreduces by adasum: the whole tensor through CPU memory\n"
         "memory of GPUs, named tensors up to " +
         kib(kMostFusedBytes) + " that nccl combines in one batch: packed into one buffer\n";
}

Outcome DeviceBackend::run(const Request& request, CallDeadline deadline) {
  path_ = Path::kNone;
  Outcome outcome;
  const bool is_adasum = request.call.op == DDL_ADASUM;
  if (request.call.memory == Memory::kDevice && !is_adasum) {
    outcome = run_on_gpu(request, deadline);
  } else if (outcome = nccl_.settle(); outcome) {
    outcome = is_adasum ? adasum_.run(request, deadline) : host_->run(request, deadline);
  }
  if (!outcome && connections_.abort().is_raised()) is_reported_ = true;
  return outcome;
}

const SmallCall* DeviceBackend::repeated_by(const Call& call, const std::uint64_t* counts, const void* send,
                                            const void* recv) const {
  if (may_be_on_gpu(send, recv)) return nullptr;
  return host_->repeated_by(call, counts, send, recv);
}

Outcome DeviceBackend::run_on_gpu(const Request& request, CallDeadline deadline) {
  // Every rank has its elements in a chunk of its own.
  const auto ranks = static_cast<std::size_t>(connections_.membership().size);
  const std::size_t chunk_bytes =
      std::max(job_.settings.gpu_chunk_bytes, std::bit_ceil(ranks * sizeof(std::uint64_t)));
  Request on_gpu = request;
  on_gpu.call.log2_chunk_bytes = static_cast<std::uint8_t>(std::countr_zero(chunk_bytes));
  if (auto outcome = nccl_.run(on_gpu, deadline)) {
    path_ = Path::kNccl;
    return *std::move(outcome);
  }
  if (auto settled = nccl_.settle(); !settled) return settled;
  if (auto outcome = ipc_.run(on_gpu, deadline)) {
    path_ = Path::kIpc;
    return *std::move(outcome);
  }
  if (!staged_) staged_.emplace(*host_, connections_, job_.heap.get(), chunk_bytes);
  return staged_->run(on_gpu, deadline);
}

Outcome DeviceBackend::end() {
  Outcome ended = nccl_.end();
  if (auto shared = ipc_.end(); ended && !shared) ended = shared;
  if (auto host = host_->end(); ended && !host) ended = host;
  // A call has said it.
  return is_reported_ ? Outcome() : ended;
}

}  // namespace ddl::runtime
