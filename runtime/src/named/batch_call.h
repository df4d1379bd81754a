// How one batch of named tensors is executed by ordinary collectives.
#pragma once

#include <vector>

#include "runtime/src/backend/collective_backend.h"
#include "runtime/src/device/device_allocations.h"
#include "runtime/src/named/prediction.h"
#include "runtime/src/named/submission.h"
#include "runtime/src/shm/shared_heap.h"

namespace ddl::runtime {

/// What the calls of a batch use; all outlive it.
struct BatchCaller {
  CollectiveBackend& backend;
  // For results whose size was not known before.
  SharedHeap& heap;
  DeviceAllocations& device_memory;
  int rank = 0;  ///< of this rank in the process set
  int size = 1;
  double timeout_seconds = 0;  ///< of each call
};

/// Executes a batch that has not failed. submissions: this rank's, in the order of the tensors; empty if it has
/// joined. All ranks compare the batch first; DDL_ERROR_MISMATCH if they differ, and then nothing has been written.
Outcome execute(const BatchCaller& caller, const Batch& batch, const std::vector<SubmissionPtr>& submissions);

}  // namespace ddl::runtime
