#include "launcher/job/slurm/slurm_allocation.h"

#include <algorithm>
#include <utility>

#include "launcher/job/host_name.h"

namespace ddl::launcher {
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
      return fail(ErrorCode::kInvalidArgument, wanted.name + ": Slurm reaches it, without a login or a port");
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

int implied_num_proc(const SlurmJob& job) {
  if (job.num_tasks) return *job.num_tasks;
  int gpus = 0;
  for (const SlurmNode& node : job.nodes) gpus += node.gpus;
  return gpus > 0 ? gpus : static_cast<int>(job.nodes.size());
}

}  // namespace ddl::launcher
