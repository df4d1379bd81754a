// Calls on memory of GPUs by NCCL or RCCL: from GPU to GPU, on a stream, while the host goes on. The host's backend
// compares the ranks' calls, before the data move or beside it.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "runtime/src/backend/call_watch.h"
#include "runtime/src/backend/collective_backend.h"
#include "runtime/src/backend/cpu_exchange.h"
#include "runtime/src/backend/nccl/nccl_collectives.h"
#include "runtime/src/backend/nccl/nccl_communicator.h"
#include "runtime/src/collective/block_move.h"
#include "runtime/src/device/launch_order.h"

namespace ddl::runtime {

/// Of a process set. Not thread-safe: one call at a time.
class NcclCalls {
 public:
  /// All outlive this. host executes what the ranks exchange on the host.
  NcclCalls(JobResources& job, CollectiveBackend& host, Connections& connections);
  ~NcclCalls();
  NcclCalls(const NcclCalls&) = delete;
  NcclCalls& operator=(const NcclCalls&) = delete;

  /// A call whose arguments have been checked. nullopt, on all ranks alike: it has to go through CPU memory, and
  /// nothing has been done. Returns when the call is on its stream or, if it has events, when the result is in the
  /// buffers. Unless the ranks have agreed before (they do if DDL_CHECK=1, and where the call needs it), a failure may
  /// come from the next call.
  std::optional<Outcome> run(const Request& request, CallDeadline deadline);

  /// Waits until the ranks have compared all calls; before the host's backend is used for anything else.
  Outcome settle() { return watch_ ? watch_->settle() : Outcome(); }
  /// Waits for all calls, and returns what has become of them; no further one may be made.
  Outcome end();
  /// The number of the next call. The host's backend has not counted those that have not been compared.
  std::uint64_t next_number() const;

 private:
  std::optional<Outcome> transfer(const Request& request, CallDeadline deadline);
  /// Makes the communicator, if all ranks can. Inside a call that the ranks have compared.
  Outcome join(const Request& request, CallDeadline deadline);
  Outcome make_communicator(Device& device, CallDeadline deadline);
  /// What was put on other communicators' streams without an order has ended.
  Outcome wait_for_others(Device& device, CallDeadline deadline);

  /// A call that is on the communicator's stream.
  struct Launched {
    Call call;
    std::optional<DeviceEvent> end;
    // The result on the GPU, if it has to be on the host.
    std::byte* result = nullptr;
    std::size_t result_bytes = 0;
  };

  /// A call that the ranks have compared, in the order of all communicators.
  Outcome launch_in_order(const Request& request, const BlockMove* blocks, CallDeadline deadline);
  /// A call that the ranks compare meanwhile, if there are no other communicators.
  Outcome launch_alone(const Request& request, CallDeadline deadline);
  Outcome launch(const Request& request, const BlockMove* blocks, Launched& launched, CallDeadline deadline);
  Status begin(const Request& request);
  Status put(const Request& request, const BlockMove* blocks, Launched& launched,
             const NcclCommunicator::MustStop& must_stop);
  Outcome wait_for_end(const Request& request, Launched& launched, CallDeadline deadline);

  JobResources& job_;
  CollectiveBackend& host_;
  Connections& connections_;
  CpuExchange exchange_;
  LaunchOrder::Place place_;
  std::unique_ptr<NcclCommunicator> communicator_;
  std::unique_ptr<CallWatch> watch_;
  std::uint64_t last_number_ = 0;
  DeviceEvent marker_;       ///< for what a call comes after
  NcclAbilities abilities_;  ///< of all ranks, once there is a communicator
  bool is_staged_ = false;   ///< all ranks know that they cannot use NCCL
};

}  // namespace ddl::runtime
