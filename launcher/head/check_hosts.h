// What hosts have, and what a job would be on them: an agent is started on every host, asked for its facts and ended.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/environment.h"
#include "base/error.h"
#include "launcher/job/allocation.h"
#include "launcher/job/job_spec.h"
#include "launcher/plan/launch_plan.h"
#include "launcher/plan/node_facts.h"

namespace ddl::launcher {

/// What --check-hosts learned about one host.
struct HostCheck {
  std::string name;                 ///< as the user wrote it
  std::optional<NodeFacts> facts;   ///< nullopt: no agent of ours runs there; failure says why
  std::string failure;              ///< one sentence, without the host's name
  double answer_seconds = 0;        ///< from the start of its agent to its facts
  double clock_offset_seconds = 0;  ///< its clock minus ours; too small by its answer's latency
};

/// Asks all nodes of the allocation at once, each within its start_timeout_seconds, and returns when no agent is
/// left. The result has one entry for each node, in the order of the allocation. Must be called while the process
/// has one thread. own: the environment of this process. progress: as Notices::progress. Error: no agent could be
/// started on this machine.
Result<std::vector<HostCheck>> check_hosts(const JobSpec& spec, const Allocation& allocation,
                                           const Environment& own,
                                           const std::function<void(const std::string&)>& progress);

/// The plan of a job, which is not started. Without asks_hosts no other machine is contacted, and what only the hosts
/// know is unknown in the plan; with it, they are asked as by check_hosts(). Error: as run_job(), or every host that did
/// not answer, and why.
Result<DryPlan> dry_run(const JobSpec& spec, const Allocation& allocation,
                        const Environment& head_environment, bool asks_hosts,
                        const std::function<void(const std::string&)>& progress);

}  // namespace ddl::launcher
