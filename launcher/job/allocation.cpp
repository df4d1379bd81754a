#include "launcher/job/allocation.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "contract/environment.h"
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
    auto nodes = parse_hostfile(hostfile_text, allocation.origin);
    if (!nodes) return fail(std::move(nodes.error()));
    allocation.nodes = std::move(*nodes);
  } else if (!spec.placed_ranks.empty()) {
    const auto names = hosts_of(spec.placed_ranks, hostname);
    if (!names) return fail(names.error());
    allocation.origin = spec.rankfile;
    for (const std::string& name : *names) allocation.nodes.emplace_back().name = name;
  } else {
    allocation = local_allocation(hostname);
  }
  return allocation;
}

}  // namespace

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

Result<int> implied_num_ranks(const JobSpec& spec, const Allocation& allocation) {
  const bool chooses = !spec.hosts.empty() || !spec.hostfile.empty() || spec.ranks_per_node > 0;
  const bool has_all = allocation.slurm && allocation.nodes.size() == allocation.slurm->nodes.size();
  if (!chooses && has_all) return implied_num_ranks(*allocation.slurm);
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

namespace {

AllocatedNode allocated(const SlurmJob& job, const SlurmNode& node) {
  AllocatedNode result;
  result.name = node.name;
  result.slots = job.num_tasks || node.gpus == 0 ? node.tasks : node.gpus;
  result.spare_slots = std::max({*result.slots, node.cpus, node.gpus});
  return result;
}

}  // namespace

Allocation allocation_of(const SlurmJob& job) {
  Allocation allocation;
  for (const SlurmNode& node : job.nodes) allocation.nodes.push_back(allocated(job, node));
  allocation.origin = described(job);
  allocation.slurm = job;
  return allocation;
}

Result<Allocation> allocation_of(const SlurmJob& job, const Allocation& chosen, const std::string& hostname) {
  Allocation allocation;
  for (const AllocatedNode& wanted : chosen.nodes) {
    const bool is_here = is_this_machine(wanted, hostname);
    const auto node = std::find_if(job.nodes.begin(), job.nodes.end(), [&](const SlurmNode& one) {
      AllocatedNode named;
      named.name = one.name;
      return host_key(one.name) == host_key(wanted.name) || (is_here && is_this_machine(named, hostname));
    });
    if (node == job.nodes.end())
      return fail(ErrorCode::kInvalidArgument, wanted.name + " is not a node of " + described(job));
    if (wanted.user || wanted.port)
      return fail(ErrorCode::kInvalidArgument,
                  wanted.name + ": srun starts its agent, so no user and no port can be given");
    AllocatedNode result = allocated(job, *node);
    result.max_slots = wanted.max_slots;
    if (wanted.slots) {
      result.slots = wanted.slots;
      result.spare_slots = std::max(*wanted.slots, result.spare_slots.value_or(0));
    }
    allocation.nodes.push_back(std::move(result));
  }
  allocation.origin = chosen.origin + " in " + described(job);
  allocation.slurm = job;
  return allocation;
}

int implied_num_ranks(const SlurmJob& job) {
  if (job.num_tasks) return *job.num_tasks;
  int gpus = 0;
  for (const SlurmNode& node : job.nodes) gpus += node.gpus;
  return gpus > 0 ? gpus : static_cast<int>(job.nodes.size());
}

std::string slurm_job_of_ranks(const Allocation& allocation, const Environment& own) {
  if (own.contains(contract::env::kRank)) return "";
  return allocation.slurm ? allocation.slurm->id : value_of(own, "SLURM_JOB_ID");
}

namespace {

using Option = AllocationError::Option;

/// Newer versions of tl::unexpected do not take "{...}" themselves.
tl::unexpected<AllocationError> no_allocation(AllocationError error) {
  return tl::unexpected<AllocationError>(std::move(error));
}

}  // namespace

tl::expected<std::optional<SlurmJob>, AllocationError> slurm_job_to_use(const JobSpec& spec,
                                                                        const Environment& environment) {
  const bool by_srun = spec.launcher == LauncherChoice::kSrun;
  const bool may_be_slurms = (spec.launcher == LauncherChoice::kAuto && spec.launch_agent.empty()) ||
                             spec.launcher == LauncherChoice::kMpirun;
  if (spec.launcher != LauncherChoice::kLocal) {
    if (const Status alone = check_single_task(environment); !alone)
      return no_allocation({alone.error().message(), "to start ranks beside each task: --launcher local"});
  }
  if (!by_srun && !may_be_slurms) return std::nullopt;
  const auto slurm = slurm_job(environment);
  if (!slurm)
    return no_allocation({slurm.error().message(),
                          "to ignore Slurm: --launcher local for ranks on this machine, or --launcher ssh"});
  if (by_srun && !*slurm)
    return no_allocation({"--launcher srun starts ranks in a Slurm job, but ddlrun does not run in one",
                          "start one with salloc first, or write a job script with --slurm"});
  return *slurm;
}

tl::expected<Allocation, AllocationError> find_allocation(const JobSpec& spec,
                                                          const std::string& hostfile_text,
                                                          const std::optional<SlurmJob>& slurm,
                                                          const std::string& hostname) {
  const bool chooses = !spec.hosts.empty() || !spec.hostfile.empty();
  auto allocation = slurm && !chooses ? without_hosts(allocation_of(*slurm), spec.hosts_exclude)
                                      : make_allocation(spec, hostfile_text, hostname);
  if (!allocation)
    return no_allocation({allocation.error().message(),
                          "hosts are written as in node1:4, me@node1:4, [2001:db8::1]:4 or node[01-16]:4",
                          Option::kHosts});
  if (slurm && spec.fan_out > 0)
    return no_allocation({"--fan-out is for hosts over ssh; in a Slurm job, srun starts every agent",
                          "omit it, or add --launcher ssh", Option::kFanOut});
  if (slurm && chooses) allocation = allocation_of(*slurm, *allocation, hostname);
  if (!allocation)
    return no_allocation(
        {allocation.error().message(), "to use hosts outside the Slurm job over ssh: --launcher ssh"});
  if (spec.launcher != LauncherChoice::kLocal) return *std::move(allocation);
  for (const AllocatedNode& node : allocation->nodes) {
    if (!is_this_machine(node, hostname))
      return no_allocation({"--launcher local starts ranks on this machine, " + hostname + ", but " +
                                node.name + " is another one",
                            "omit --launcher: ddlrun then reaches other hosts over ssh"});
  }
  return *std::move(allocation);
}

}  // namespace ddl::launcher
