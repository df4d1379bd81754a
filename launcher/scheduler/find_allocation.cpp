#include "launcher/scheduler/find_allocation.h"

#include <algorithm>
#include <utility>

#include "launcher/job/host_name.h"
#include "launcher/scheduler/scheduler.h"
#include "launcher/scheduler/slurm.h"

namespace ddl::launcher {
namespace {

AllocatedNode allocated(const SchedulerJob& job, const SchedulerNode& node) {
  AllocatedNode result;
  result.name = node.name;
  result.slots = job.num_tasks || node.gpus == 0 ? node.tasks : node.gpus;
  result.spare_slots = std::max({*result.slots, node.cpus, node.gpus});
  return result;
}

}  // namespace

Allocation allocation_of(const SchedulerJob& job) {
  Allocation allocation;
  for (const SchedulerNode& node : job.nodes) allocation.nodes.push_back(allocated(job, node));
  allocation.origin = described(job);
  allocation.job = job;
  return allocation;
}

Result<Allocation> allocation_of(const SchedulerJob& job, const Allocation& chosen,
                                 const std::string& hostname) {
  Allocation allocation;
  allocation.job = job;
  for (const AllocatedNode& wanted : chosen.nodes) {
    const bool is_here = is_this_machine(wanted, hostname);
    const auto node = std::find_if(job.nodes.begin(), job.nodes.end(), [&](const SchedulerNode& one) {
      AllocatedNode named;
      named.name = one.name;
      return host_key(one.name) == host_key(wanted.name) || (is_here && is_this_machine(named, hostname));
    });
    if (node == job.nodes.end())
      return fail(ErrorCode::kInvalidArgument, wanted.name + " is not a node of " + described(job));
    if (wanted.user || wanted.port)
      return fail(ErrorCode::kInvalidArgument, wanted.name + ": " + scheduler_of(allocation).starter() +
                                                   " starts its agent, so no user and no port can be given");
    AllocatedNode result = allocated(job, *node);
    result.max_slots = wanted.max_slots;
    if (wanted.slots) {
      result.slots = wanted.slots;
      result.spare_slots = std::max(*wanted.slots, result.spare_slots.value_or(0));
    }
    allocation.nodes.push_back(std::move(result));
  }
  allocation.origin = chosen.origin + " in " + described(job);
  return allocation;
}

Status check_single_task(const Environment& own) {
  for (const Scheduler* const scheduler : schedulers()) DDL_TRY(scheduler->check_single_task(own));
  return {};
}

Result<std::optional<SchedulerJob>> job_to_use(const JobSpec& spec, const Environment& own) {
  const bool by_srun = spec.launcher == LauncherChoice::kSrun;
  const bool may_be_in_job = (spec.launcher == LauncherChoice::kAuto && spec.ssh.launch_agent.empty()) ||
                             spec.launcher == LauncherChoice::kMpirun;
  if (spec.launcher != LauncherChoice::kLocal) {
    if (const Status alone = check_single_task(own); !alone)
      return fail(alone.error().with_hint("to start ranks beside each task: --launcher local"));
  }
  if (!by_srun && !may_be_in_job) return std::nullopt;
  for (const Scheduler* const scheduler : schedulers()) {
    if (by_srun && scheduler != &slurm()) continue;
    auto job = scheduler->find_job(own);
    if (!job)
      return fail(job.error().with_hint("to ignore " + scheduler->name() +
                                        ": --launcher local for ranks on this machine, or --launcher ssh"));
    if (*job) return *std::move(job);
  }
  if (by_srun)
    return refuse("--launcher srun starts ranks in a Slurm job, but ddlrun does not run in one",
                  "start one with salloc first, or write a job script with --slurm");
  return std::nullopt;
}

namespace {

bool chooses_hosts(const JobSpec& spec) { return !spec.hosts.empty() || !spec.hostfile.empty(); }

}  // namespace

Result<Allocation> named_hosts(const JobSpec& spec, const std::string& hostfile_text,
                               const std::optional<SchedulerJob>& job, const std::string& hostname) {
  auto hosts = job && !chooses_hosts(spec) ? without_hosts(allocation_of(*job), spec.hosts_exclude)
                                           : make_allocation(spec, hostfile_text, hostname);
  if (!hosts)
    return fail(hosts.error().with_hint(
        "hosts are written as in node1:4, me@node1:4, [2001:db8::1]:4 or node[01-16]:4"));
  return hosts;
}

Status check_fan_out(const JobSpec& spec, const std::optional<SchedulerJob>& job) {
  if (!job || spec.ssh.fan_out <= 0) return {};
  const Scheduler& scheduler = scheduler_of(*job);
  return refuse("--fan-out is for hosts over ssh; in a " + scheduler.name() + " job, " + scheduler.starter() +
                    " starts every agent",
                "omit it, or add --launcher ssh");
}

Result<Allocation> find_allocation(const JobSpec& spec, Allocation hosts,
                                   const std::optional<SchedulerJob>& job, const std::string& hostname) {
  if (job && chooses_hosts(spec)) {
    auto chosen = allocation_of(*job, hosts, hostname);
    if (!chosen)
      return fail(chosen.error().with_hint("to use hosts outside the " + scheduler_of(*job).name() +
                                           " job over ssh: --launcher ssh"));
    hosts = *std::move(chosen);
  }
  if (spec.launcher != LauncherChoice::kLocal) return hosts;
  for (const AllocatedNode& node : hosts.nodes) {
    if (!is_this_machine(node, hostname))
      return refuse("--launcher local starts ranks on this machine, " + hostname + ", but " + node.name +
                        " is another one",
                    "omit --launcher: ddlrun then reaches other hosts over ssh");
  }
  return hosts;
}

}  // namespace ddl::launcher
