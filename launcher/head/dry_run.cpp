#include "launcher/head/dry_run.h"

#include <optional>
#include <string>
#include <vector>

#include "base/text.h"
#include "launcher/head/check_hosts.h"
#include "launcher/node/node_probe.h"

namespace ddl::launcher {

Result<DryPlan> dry_run(const JobSpec& spec, const Allocation& allocation,
                        const Environment& head_environment, bool asks_hosts,
                        const std::function<void(const std::string&)>& progress) {
  const NodeFacts here = probe_node();
  std::vector<std::optional<NodeFacts>> known;
  if (!asks_hosts) {
    for (const AllocatedNode& node : allocation.nodes)
      known.push_back(is_this_machine(node, here.hostname) ? std::optional(here) : std::nullopt);
    return make_dry_plan(spec, allocation, known, here, head_environment);
  }
  auto hosts = check_hosts(spec, allocation, head_environment, progress);
  if (!hosts) return fail(std::move(hosts.error()));
  std::vector<std::string> failures;
  for (HostCheck& host : *hosts) {
    if (!host.facts) failures.push_back(host.name + ": " + host.failure);
    known.push_back(std::move(host.facts));
  }
  if (!failures.empty()) return fail(ErrorCode::kUnavailable, join(failures, "; "));
  return make_dry_plan(spec, allocation, known, here, head_environment);
}

}  // namespace ddl::launcher
