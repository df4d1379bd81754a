// Collectives on memory of GPUs as well as of hosts: the calls on memory of the host go to the host's backend.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "runtime/src/backend/collective_backend.h"
#include "runtime/src/backend/ipc_calls.h"
#include "runtime/src/backend/nccl_calls.h"
#include "runtime/src/backend/staged_calls.h"
#include "runtime/src/wire/connections.h"

namespace ddl::runtime {

/// Where the buffers of a call lie.
struct BufferPlace {
  Memory memory = Memory::kHost;
  Device* device = nullptr;  ///< null: on the host, or nothing on this rank
};

/// Finds it out. send, recv: those that this rank uses, null: it does not. stream: what the call's options name; without
/// buffers it alone says that those of the other ranks lie on GPUs. From any thread. Costs 10 ns in a process without a
/// GPU's runtime. An error: the buffers lie in different memories, or the stream records a graph.
tl::expected<BufferPlace, Failure> place_of(const void* send, const void* recv, StreamHandle stream);

/// The same for a checked request, which it completes. rank, size: of the process set.
Outcome place_buffers(Request& request, int rank, int size, StreamHandle stream);

/// The rules by which the way of a call on memory of GPUs is chosen, one on a line; the last one that applies holds.
std::string explain_device_choices();

class DeviceBackend final : public CollectiveBackend {
 public:
  /// All outlive this.
  DeviceBackend(JobResources& job, Connections& connections, std::unique_ptr<CollectiveBackend> host)
      : job_(job),
        connections_(connections),
        host_(std::move(host)),
        nccl_(job, *host_, connections),
        ipc_(job, *host_, connections) {}

  contract::CpuOperations operations() const override { return host_->operations(); }
  Status allows_call() const override { return host_->allows_call(); }
  bool allows_own_threads() const override { return host_->allows_own_threads(); }
  std::unique_ptr<CollectiveBackend> make_twin(Connections& twin) override {
    return std::make_unique<DeviceBackend>(job_, twin, host_->make_twin(twin));
  }
  Outcome run(const Request& request, CallDeadline deadline) override;
  std::uint64_t next_number() const override { return nccl_.next_number(); }
  Way last_way() const override { return way_ == Way::kNone ? host_->last_way() : way_; }
  Outcome end() override;

 private:
  Outcome run_on_gpu(const Request& request, CallDeadline deadline);

  JobResources& job_;
  Connections& connections_;
  std::unique_ptr<CollectiveBackend> host_;
  std::optional<StagedCalls> staged_;  ///< from the first call by way of the host
  NcclCalls nccl_;
  IpcCalls ipc_;
  bool is_told_ = false;  ///< a call has failed because the ranks were aborted
  Way way_ = Way::kNone;  ///< of the last call; kNone: the host's backend knows
};

}  // namespace ddl::runtime
