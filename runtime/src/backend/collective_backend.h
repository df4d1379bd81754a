// The seam below which a process set's collectives are carried out, and the check that all ranks of a job have chosen the
// same backend.
#pragma once

#include <memory>

#include "base/error.h"
#include "contract/cpu_operations.h"
#include "runtime/src/bootstrap/bootstrap.h"
#include "runtime/src/collective/request.h"
#include "runtime/src/common/failure.h"
#include "runtime/src/common/settings.h"
#include "runtime/src/wire/connections.h"

namespace ddl::runtime {

// The seam below which a process set's collectives are carried out: whole calls, however that is done.
//
// Above it stand the order of calls, argument checks, watching and aborting; what is below looks at the group's abort
// (shm/abort.h) whenever it waits, and tells it of what it finds out.

/// Of one process set, one call at a time. It has left its communication partners in peace when the destructor returns.
class CollectiveBackend {
 public:
  CollectiveBackend() = default;
  virtual ~CollectiveBackend() = default;
  CollectiveBackend(const CollectiveBackend&) = delete;
  CollectiveBackend& operator=(const CollectiveBackend&) = delete;

  virtual contract::CpuOperations operations() const = 0;
  /// One collective or transfer, whose arguments have been checked. Before any receive buffer is written, all ranks have
  /// called the same; otherwise DDL_ERROR_MISMATCH on all.
  virtual Outcome run(const Request& request, CallDeadline deadline) = 0;
};

// All ranks of a job say who is to carry out their collectives, and how much goes in one step: it has to be the same.

/// Before the fence.
Status put_operations(Bootstrap& bootstrap, const Settings& settings);
/// After it. kInvalidArgument: another rank has put something else, which is named.
Status check_same_operations(Bootstrap& bootstrap, const Settings& settings);

/// What the settings name. The first one of a job by MPI joins its MPI. All outlive the backend.
Result<std::unique_ptr<CollectiveBackend>> make_backend(JobResources& job, Bootstrap& bootstrap,
                                                        Connections& connections);

}  // namespace ddl::runtime
