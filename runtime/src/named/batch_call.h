// How one batch of named tensors is executed by ordinary collectives.
#pragma once

#include <vector>

#include "runtime/src/backend/collective_backend.h"
#include "runtime/src/named/prediction.h"
#include "runtime/src/named/submission.h"

namespace ddl::runtime {

/// Executes a batch that has not failed, for a rank of these members. submissions: this rank's, in the order of the
/// tensors; empty if it has joined. All ranks compare the batch first; DDL_ERROR_MISMATCH if they differ, and then
/// nothing has been written.
Outcome execute(CollectiveBackend& backend, JobResources& job, const Membership& members, const Batch& batch,
                const std::vector<SubmissionPtr>& submissions);

}  // namespace ddl::runtime
