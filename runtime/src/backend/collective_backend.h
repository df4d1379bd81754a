// The seam below which a process set's collectives are carried out: whole calls, however that is done.
//
// Above it stand the order of calls, argument checks, watching and aborting; what is below looks at the group's abort
// (channel/abort.h) whenever it waits, and tells it of what it finds out.
#pragma once

#include "contract/cpu_operations.h"
#include "runtime/src/channel/channel.h"
#include "runtime/src/collective/request.h"
#include "runtime/src/failure.h"

namespace ddl::runtime {

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

}  // namespace ddl::runtime
