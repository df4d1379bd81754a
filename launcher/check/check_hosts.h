// --check-hosts: an agent on every host, asked for its facts and let go.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/error.h"
#include "launcher/check/host_check.h"
#include "launcher/job/allocation.h"
#include "launcher/job/environment.h"
#include "launcher/job/job_spec.h"

namespace ddl::launcher {

/// Asks all nodes of the allocation at once, each within spec.start_timeout_seconds, and returns when no agent is left;
/// one for each node, in its order. Must be called while the process has one thread.
/// own: the environment of this process. progress: as Notices::progress. Error: no agent could be begun on this machine.
Result<std::vector<HostCheck>> check_hosts(const JobSpec& spec, const Allocation& allocation,
                                           const Environment& own,
                                           const std::function<void(const std::string&)>& progress);

}  // namespace ddl::launcher
