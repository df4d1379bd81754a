// Calls of ranks that share a GPU: each rank reads and writes the others' buffers there, with libddl's own kernels and
// copies. Results have the bits of the backend of CPU memory.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "runtime/src/backend/call_watch.h"
#include "runtime/src/backend/collective_backend.h"
#include "runtime/src/backend/cpu_exchange.h"
#include "runtime/src/backend/ipc_memory.h"
#include "runtime/src/collective/block_move.h"

namespace ddl::runtime {

// Nothing on the GPU waits for another rank while it occupies the GPU. Each call has two events of each rank: ready, after
// which the others may use its buffers, and done, after which it does not use theirs. An event is recorded before the ranks
// exchange something in CPU memory, and others wait for it after that; so a wait is always for something that has been
// put on a stream, and streams cannot wait for each other in a circle.

/// Of a process set. Not thread-safe: one call at a time.
class IpcCalls {
 public:
  /// All outlive this. host executes what the ranks exchange in CPU memory.
  IpcCalls(JobResources& job, CollectiveBackend& host, Connections& connections)
      : job_(job), connections_(connections), exchange_(host, connections) {}
  ~IpcCalls();
  IpcCalls(const IpcCalls&) = delete;
  IpcCalls& operator=(const IpcCalls&) = delete;

  /// A call whose arguments have been checked. nullopt, on all ranks alike: it has to go through CPU memory, and
  /// nothing has been done. Returns when the ranks have put their parts on the GPU or, if the call has events, when the
  /// result is in the buffers. Afterwards a failure comes from the next call.
  std::optional<Outcome> run(const Request& request, CallDeadline deadline);
  /// Waits for all calls, and returns what has become of them; no further one may be made.
  Outcome end();

 private:
  /// What exists from the first call on.
  struct Resources {
    Device* device;
    DeviceStream stream;
    DeviceEvent marker;  ///< for what a call comes after
    SharedEvent ready, done;
    // Of all ranks; those of other processes have been opened.
    std::vector<EventHandle> all_ready{}, all_done{};
    std::vector<DeviceEvent> opened{};
    std::unique_ptr<IpcMemory> memory;
    std::unique_ptr<CallWatch> watch{};
  };

  /// Makes that, if all ranks can. Inside a call that the ranks have compared.
  Outcome join(const Request& request, CallDeadline deadline);
  Outcome prepare(Device& device, SharedEvent ready, SharedEvent done, std::span<const IpcPeerInfo> peers,
                  CallDeadline deadline);
  Result<Resources> make_resources(Device& device, SharedEvent ready, SharedEvent done,
                                   std::span<const IpcPeerInfo> peers);
  /// All calls go through CPU memory from now on.
  void fall_back(const std::string& reason);

  std::optional<Outcome> run_on_gpu(const Request& request, CallDeadline deadline);
  /// Whether every rank can reach the buffers of all ranks.
  tl::expected<bool, Failure> open(const Request& request, const IpcBuffers& buffers, CallDeadline deadline);
  Status begin(const Request& request);
  /// This rank's part of the call, which moves blocks or combines elements.
  Status put(const Request& request, const IpcBuffers& buffers, const std::optional<BlockMove>& blocks);
  Status put_combination(const Request& request, const IpcBuffers& buffers);
  /// Elements of one of the call's parts.
  Status combine(const Request& request, const IpcBuffers& buffers, std::size_t part,
                 const ElementRange& own);
  Status put_copies(const Request& request, const IpcBuffers& buffers, const BlockMove& blocks);
  Outcome finish(const Request& request, CallDeadline deadline);
  /// Whether what is on the stream ends soon.
  bool becomes_idle();
  /// Nothing of this rank's is on the GPU any more.
  Outcome wait_for_last(CallDeadline deadline);

  JobResources& job_;
  Connections& connections_;
  CpuExchange exchange_;
  std::optional<Resources> resources_;
  bool is_off_ = false;  ///< all ranks know that they cannot use each other's memory
};

}  // namespace ddl::runtime
