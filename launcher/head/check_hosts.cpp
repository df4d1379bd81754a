#include "launcher/head/check_hosts.h"

#include <chrono>
#include <csignal>

#include "base/text.h"
#include "launcher/fleet/fleet.h"
#include "launcher/head/job_start.h"
#include "launcher/loop/event_loop.h"
#include "launcher/node/node_probe.h"
#include "launcher/process/child.h"

namespace ddl::launcher {
namespace {

constexpr auto kShutDownDeadline = std::chrono::milliseconds(1500);

}  // namespace

Result<std::vector<HostCheck>> check_hosts(const JobSpec& spec, const Allocation& allocation,
                                           const Environment& own,
                                           const std::function<void(const std::string&)>& progress) {
  DDL_TRY(check_open_files_limit());
  std::signal(SIGPIPE, SIG_IGN);  // an agent that has ended is an error of write()
  EventLoop loop;
  NodeStarters starters(spec, allocation, own);
  SshSettings ssh = starters.ssh();
  ssh.fan_out = 0;
  Fleet fleet(loop, ssh, starters.group_starter());
  FleetProgress shown(loop, fleet, allocation, progress);
  DDL_TRY(fleet.start(allocation, starters.by_node()));
  // A host whose agent is lost after its answer has been checked all the same.
  fleet.listen({[&loop] { loop.stop(); }, [](int, const net::Frame&) { return Status(); },
                [](int, const std::string&) {}});
  shown.start();
  loop.run();
  shown.stop();

  std::vector<HostCheck> hosts(allocation.nodes.size());
  for (const auto& [node, why] : fleet.failures()) hosts[node].failure = why;
  for (int node = 0; node < std::ssize(hosts); ++node) {
    HostCheck& host = hosts[node];
    host.name = allocation.nodes[node].name;
    if (!host.failure.empty()) continue;
    host.facts = fleet.facts()[node];
    host.answer_seconds = fleet.answer_seconds(node);
    host.clock_offset_seconds = fleet.clock_offset_seconds(node);
  }
  fleet.shut_down(Deadline::after(kShutDownDeadline));
  return hosts;
}

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
  DDL_ASSIGN(hosts, check_hosts(spec, allocation, head_environment, progress));
  std::vector<std::string> failures;
  for (HostCheck& host : hosts) {
    if (!host.facts) failures.push_back(host.name + ": " + host.failure);
    known.push_back(std::move(host.facts));
  }
  if (!failures.empty()) return fail(ErrorCode::kUnavailable, join(failures, "; "));
  return make_dry_plan(spec, allocation, known, here, head_environment);
}

}  // namespace ddl::launcher
