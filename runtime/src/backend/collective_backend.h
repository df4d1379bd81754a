// The interface of the backends that execute a process set's collectives, and the check that all ranks of a job
// have chosen the same backend.
#pragma once

#include <memory>

#include "base/error.h"
#include "contract/operations.h"
#include "runtime/src/bootstrap/bootstrap.h"
#include "runtime/src/collective/request.h"
#include "runtime/src/collective/small_call.h"
#include "runtime/src/common/failure.h"
#include "runtime/src/common/settings.h"
#include "runtime/src/wire/connections.h"

namespace ddl::runtime {

// A backend gets complete calls. The code above it orders calls, checks arguments, watches ranks and raises aborts. A
// backend checks the group's abort (shm/abort.h) whenever it waits, and raises one for failures that it finds.

/// For one process set, one call at a time. When the destructor returns, it does not communicate any more.
class CollectiveBackend {
 public:
  CollectiveBackend() = default;
  virtual ~CollectiveBackend() = default;
  CollectiveBackend(const CollectiveBackend&) = delete;
  CollectiveBackend& operator=(const CollectiveBackend&) = delete;

  virtual contract::CpuOperations operations() const = 0;
  /// Whether this thread may make calls; kUnavailable with the reason if not. From any thread.
  virtual Status allows_call() const = 0;
  /// Whether a thread of libddl's own may make calls, whatever the program does meanwhile. From any thread.
  virtual bool allows_own_threads() const = 0;
  /// A backend of the same kind on the duplicate of this one's connections, for calls that one thread makes beside
  /// those of this one. Does not communicate, and may be called once, from any thread. duplicate and this outlive the
  /// result.
  virtual std::unique_ptr<CollectiveBackend> make_duplicate(Connections& duplicate) = 0;
  /// One collective or transfer, whose arguments have been checked. Before any receive buffer is written, all ranks
  /// have called the same; otherwise DDL_ERROR_MISMATCH on all.
  virtual Outcome run(const Request& request, CallDeadline deadline) = 0;
  /// The small call that one without options would repeat; null: it is to be checked and run. counts: of all ranks, or
  /// null. Valid until the next call.
  virtual const SmallCall* repeated_by(const Call&, const std::uint64_t* /*counts*/, const void* /*send*/,
                                       const void* /*recv*/) const {
    return nullptr;
  }
  /// What events say of calls. Only by the thread that makes the calls.
  virtual std::uint64_t next_number() const = 0;  ///< of a call
  virtual Path last_path() const = 0;
  /// Waits for what calls have left under way, and fails if one of them has. After the last call, before this rank leaves
  /// the set.
  virtual Outcome end() = 0;
};

// All ranks of a job must name the same backend, and for MPI the same bytes in one step.

/// Publishes this rank's choice, before the fence.
Status put_operations(Bootstrap& bootstrap, const Settings& settings);
/// Compares all ranks' choices, after the fence. kInvalidArgument names a rank that has put another one.
Status check_same_operations(Bootstrap& bootstrap, const Settings& settings);

/// Makes the backend that the settings name. The first MPI backend of a job joins MPI's world. All arguments outlive
/// the backend.
Result<std::unique_ptr<CollectiveBackend>> make_backend(JobResources& job, Bootstrap& bootstrap,
                                                        Connections& connections);

}  // namespace ddl::runtime
