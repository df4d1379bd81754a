// Calls on memory of a GPU through CPU memory: a chunk at a time is copied to pinned memory, goes through a collective
// of the host's backend, and is copied back. While one chunk is in the collective, the next one comes from the GPU and
// the last one goes back, on streams of their own. So results have the bits of the host's backend.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <vector>

#include "runtime/src/backend/collective_backend.h"
#include "runtime/src/backend/cpu_exchange.h"
#include "runtime/src/backend/device_call.h"
#include "runtime/src/backend/staged_chunks.h"
#include "runtime/src/device/device.h"
#include "runtime/src/wire/connections.h"

namespace ddl::runtime {

/// Not thread-safe: one call at a time.
class StagedCalls {
 public:
  /// All outlive this. heap: the job's, for the pinned memory; null: it has none. chunk_bytes: the same on all ranks,
  /// and at least 8 for each.
  StagedCalls(CollectiveBackend& host, Connections& connections, SharedHeap* heap, std::size_t chunk_bytes)
      : host_(host),
        connections_(connections),
        exchange_(host, connections),
        heap_(heap),
        area_bytes_(chunk_bytes) {}
  ~StagedCalls();
  StagedCalls(const StagedCalls&) = delete;
  StagedCalls& operator=(const StagedCalls&) = delete;

  /// The arguments have been checked. Returns when the result is in the buffers, or, if the call names a stream, when
  /// the last copy has been put on it.
  Outcome run(const Request& request, CallDeadline deadline);

 private:
  static constexpr std::size_t kSlots = 3;

  /// The memory of a chunk.
  struct Slot {
    std::byte* in = nullptr;
    std::byte* out = nullptr;
    DeviceEvent filled;   ///< the chunk has been copied from the GPU
    DeviceEvent emptied;  ///< and back
    bool is_emptying = false;
  };

  Outcome alltoallv(const Request& request, CallDeadline deadline);
  /// continues: the ranks have compared the call.
  Outcome run_chunks(const Request& request, const StagedChunks& chunks, bool continues,
                     CallDeadline deadline);
  Outcome run_chunks_on(Device* device, const Request& request, const StagedChunks& chunks, bool continues,
                        CallDeadline deadline);
  /// Streams, events and memory for a GPU; null: memory alone.
  Status prepare(Device* device);
  Status allocate();
  Status begin(const Request& request);
  /// Copies the inputs of a chunk.
  Status fill(const StagedChunk& chunk, Slot& slot);
  Status empty(const StagedChunk& chunk, Slot& slot);
  Outcome collective(StagedChunk& chunk, Slot& slot, CallDeadline deadline);
  Outcome wait_for(const DeviceEvent& event, const DeviceStream& stream, CallDeadline deadline) {
    return wait_on_cpu(*device_, event.get(), stream.get(), connections_, call_, deadline);
  }

  CollectiveBackend& host_;
  Connections& connections_;
  CpuExchange exchange_;
  SharedHeap* heap_;
  Call call_;  ///< the program's, for messages
  std::size_t area_bytes_;
  Device* device_ = nullptr;  ///< for which streams and events have been made
  DeviceStream down_, up_;    ///< from the GPU, and to it
  DeviceEvent begun_;
  std::array<Slot, kSlots> slots_;
  std::byte* memory_ = nullptr;        ///< of all slots
  std::vector<std::byte> own_memory_;  ///< where there is no heap
  bool is_pinned_ = false;
};

}  // namespace ddl::runtime
