// Collectives on memory of GPUs as well as of CPUs: calls on CPU memory go to the backend below, those by Adasum in
// several steps.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "runtime/src/backend/adasum_calls.h"
#include "runtime/src/backend/collective_backend.h"
#include "runtime/src/backend/ipc_calls.h"
#include "runtime/src/backend/nccl_calls.h"
#include "runtime/src/backend/staged_calls.h"
#include "runtime/src/wire/connections.h"

namespace ddl::runtime {

/// Where the buffers of a call lie.
struct BufferPlace {
  Memory memory = Memory::kCpu;
  Device* device = nullptr;  ///< null: in CPU memory, or nothing on this rank
};

/// Finds it out. send, recv: those that this rank uses, null: it does not. stream: what the call's options name; without
/// buffers it alone says that those of the other ranks lie on GPUs. From any thread. Costs 10 ns in a process without a
/// GPU's runtime. An error: the buffers lie in different memories, or the stream records a graph.
tl::expected<BufferPlace, Failure> place_of(const void* send, const void* recv, StreamHandle stream);

/// The same for a checked request, which it completes. rank, size: of the process set.
Outcome place_buffers(Request& request, int rank, int size, StreamHandle stream);

/// The rules by which the path of a call on memory of GPUs is chosen, one on a line; the last one that applies holds.
std::string explain_device_choices();

class DeviceBackend final : public CollectiveBackend {
 public:
  /// All outlive this.
  DeviceBackend(JobResources& job, Connections& connections, std::unique_ptr<CollectiveBackend> host)
      : job_(job),
        connections_(connections),
        host_(std::move(host)),
        nccl_(job, *host_, connections),
        ipc_(job, *host_, connections),
        adasum_(*host_, connections) {}

  contract::CpuOperations operations() const override { return host_->operations(); }
  Status allows_call() const override { return host_->allows_call(); }
  bool allows_own_threads() const override { return host_->allows_own_threads(); }
  std::unique_ptr<CollectiveBackend> make_duplicate(Connections& duplicate) override {
    return std::make_unique<DeviceBackend>(job_, duplicate, host_->make_duplicate(duplicate));
  }
  Outcome run(const Request& request, CallDeadline deadline) override;
  const SmallCall* repeated_by(const Call& call, const std::uint64_t* counts, const void* send,
                               const void* recv) const override;
  std::uint64_t next_number() const override { return nccl_.next_number(); }
  Path last_path() const override { return path_ == Path::kNone ? host_->last_path() : path_; }
  Outcome end() override;

 private:
  Outcome run_on_gpu(const Request& request, CallDeadline deadline);

  JobResources& job_;
  Connections& connections_;
  std::unique_ptr<CollectiveBackend> host_;
  std::optional<StagedCalls> staged_;  ///< from the first call through CPU memory
  NcclCalls nccl_;
  IpcCalls ipc_;
  AdasumCalls adasum_;
  bool is_reported_ = false;  ///< a call has failed because the ranks were aborted
  Path path_ = Path::kNone;   ///< of the last call; kNone: the backend below knows
};

}  // namespace ddl::runtime
