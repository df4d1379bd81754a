#include "launcher/job/allocation.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "base/text.h"
#include "launcher/job/host_list.h"
#include "launcher/job/host_name.h"

namespace ddl::launcher {
namespace {

Result<Allocation> all_hosts(const JobSpec& spec, const std::string& hostfile_text,
                             const std::string& hostname) {
  Allocation allocation;
  if (!spec.hosts.empty()) {
    allocation.origin = spec.hosts_given_by;
    auto nodes = parse_host_list(spec.hosts);
    if (!nodes) return fail(std::move(nodes.error()).during(allocation.origin));
    allocation.nodes = std::move(*nodes);
  } else if (!spec.hostfile.empty()) {
    allocation.origin = spec.hostfile == "-" ? "standard input" : spec.hostfile;
    DDL_ASSIGN(nodes, parse_hostfile(hostfile_text, allocation.origin));
    allocation.nodes = std::move(nodes);
  } else if (!spec.placed_ranks.empty()) {
    DDL_ASSIGN(names, hosts_of(spec.placed_ranks, hostname));
    allocation.origin = spec.rankfile;
    for (const std::string& name : names) allocation.nodes.emplace_back().name = name;
  } else {
    allocation = local_allocation(hostname);
  }
  return allocation;
}

}  // namespace

std::string described(const SchedulerJob& job) {
  int gpus = 0, cpus = 0;
  for (const SchedulerNode& node : job.nodes) {
    gpus += node.gpus;
    cpus += node.cpus;
  }
  std::vector<std::string> parts = {counted(job.nodes.size(), "node")};
  if (job.num_tasks) parts.push_back(counted(*job.num_tasks, "task"));
  if (gpus > 0) parts.push_back(counted(gpus, "GPU"));
  if (cpus > 0) parts.push_back(counted(cpus, "CPU"));
  return job.scheduler + " job " + job.id + " (" + join(parts, ", ") + ")";
}

const SchedulerNode* find_node(const SchedulerJob& job, const std::string& name) {
  const auto found = std::find_if(job.nodes.begin(), job.nodes.end(),
                                  [&name](const SchedulerNode& node) { return node.name == name; });
  return found == job.nodes.end() ? nullptr : &*found;
}

Allocation local_allocation(const std::string& hostname) {
  AllocatedNode node;
  node.name = hostname;
  Allocation allocation;
  allocation.nodes.push_back(std::move(node));
  allocation.origin = "this machine";
  return allocation;
}

Result<Allocation> make_allocation(const JobSpec& spec, const std::string& hostfile_text,
                                   const std::string& hostname) {
  auto allocation = all_hosts(spec, hostfile_text, hostname);
  return allocation ? without_hosts(*std::move(allocation), spec.hosts_exclude) : allocation;
}

Result<Allocation> without_hosts(Allocation allocation, const std::string& excluded) {
  if (excluded.empty()) return allocation;
  const auto names = parse_host_names(excluded);
  if (!names) return fail(Error(names.error()).during("--hosts-exclude"));
  std::unordered_set<std::string> keys;
  for (const std::string& name : *names) keys.insert(host_key(name));
  std::erase_if(allocation.nodes,
                [&keys](const AllocatedNode& node) { return keys.contains(host_key(node.name)); });
  if (allocation.nodes.empty()) {
    return fail(ErrorCode::kInvalidArgument, "--hosts-exclude leaves no host of " + allocation.origin);
  }
  return allocation;
}

namespace {

/// The tasks that were asked for, else the GPUs, else one for each node.
int implied_num_ranks(const SchedulerJob& job) {
  if (job.num_tasks) return *job.num_tasks;
  int gpus = 0;
  for (const SchedulerNode& node : job.nodes) gpus += node.gpus;
  return gpus > 0 ? gpus : std::ssize(job.nodes);
}

}  // namespace

Result<int> implied_num_ranks(const JobSpec& spec, const Allocation& allocation) {
  const bool chooses = !spec.hosts.empty() || !spec.hostfile.empty() || spec.ranks_per_node > 0;
  const bool has_all = allocation.job && allocation.nodes.size() == allocation.job->nodes.size();
  if (!chooses && has_all) return implied_num_ranks(*allocation.job);
  std::int64_t sum = 0;
  for (const AllocatedNode& node : allocation.nodes) {
    if (spec.ranks_per_node == 0 && !node.slots) {
      return fail(ErrorCode::kInvalidArgument,
                  allocation.origin + " does not say how many slots " + node.name + " has");
    }
    sum += spec.ranks_per_node > 0 ? spec.ranks_per_node : *node.slots;
  }
  if (sum > kMaxRanks) {
    return fail(ErrorCode::kInvalidArgument, allocation.origin + " has " + std::to_string(sum) +
                                                 " slots; at most " + std::to_string(kMaxRanks) +
                                                 " ranks are possible");
  }
  return static_cast<int>(sum);
}

bool is_this_machine(const AllocatedNode& node, const std::string& hostname) {
  if (node.user || node.port) return false;
  const std::string name = host_key(node.name);
  const std::string own = host_key(hostname);
  if (name == "localhost" || name == "::1" || name == own || name == own.substr(0, own.find('.')))
    return true;
  // 127.0.0.0/8: an address has only digits and dots.
  return name.starts_with("127.") && name.find_first_not_of("0123456789.") == std::string::npos;
}

}  // namespace ddl::launcher
