// Finds the nodes of a job: those of the scheduler's job that ddlrun runs in, those that the user names, or this machine.
#pragma once

#include <optional>
#include <string>

#include "base/environment.h"
#include "base/error.h"
#include "launcher/job/allocation.h"
#include "launcher/job/job_spec.h"

namespace ddl::launcher {

/// The nodes of the job. The slots of a node are its tasks if the user asked for a number of tasks, else its GPUs, else
/// its tasks; its spare slots are the largest of slots, CPUs and GPUs. Pure.
Allocation allocation_of(const SchedulerJob& job);

/// The nodes of the job that the user has chosen with -H or a hostfile, in that order, with the slots that were
/// given there. Pure. hostname: of this machine, to which "localhost" refers if it is a node of the job.
/// Error (kInvalidArgument): a chosen node does not belong to the job, or has a user or a port.
Result<Allocation> allocation_of(const SchedulerJob& job, const Allocation& chosen,
                                 const std::string& hostname);

/// Error (kInvalidArgument): this is one of several tasks that a scheduler has started, each of which would start all
/// ranks. Pure.
Status check_single_task(const Environment& own);

/// Why a job has no hosts to run on.
struct AllocationError {
  enum class Option { kLauncher, kHosts, kFanOut };
  std::string message;
  std::string hint;  ///< what to do instead
  Option option =
      Option::kLauncher;  ///< the option that is wrong; kHosts: the hosts, wherever they were given
};

/// The scheduler's job that ddlrun runs in, if spec.launcher starts the ranks in it. Pure. Error: the job cannot be used,
/// or spec.launcher needs one and there is none.
tl::expected<std::optional<SchedulerJob>, AllocationError> job_to_use(const JobSpec& spec,
                                                                      const Environment& own);

/// make_allocation(), and in the job its nodes, or those of them that the spec names. Pure. Error: also what
/// spec.launcher or spec.fan_out does not allow.
tl::expected<Allocation, AllocationError> find_allocation(const JobSpec& spec,
                                                          const std::string& hostfile_text,
                                                          const std::optional<SchedulerJob>& job,
                                                          const std::string& hostname);

}  // namespace ddl::launcher
