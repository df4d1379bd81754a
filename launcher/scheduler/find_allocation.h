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

/// The scheduler's job that ddlrun runs in, if spec.launcher starts the ranks in it. Pure. Error: the job cannot be used,
/// or spec.launcher needs one and there is none.
Result<std::optional<SchedulerJob>> job_to_use(const JobSpec& spec, const Environment& own);

// In this order; each error has a hint, and blames another option.

/// The hosts that the spec names: make_allocation(). If it names none: the job's nodes. Pure.
Result<Allocation> named_hosts(const JobSpec& spec, const std::string& hostfile_text,
                               const std::optional<SchedulerJob>& job, const std::string& hostname);

/// Error: spec.ssh.fan_out in a job whose scheduler starts the agents. Pure.
Status check_fan_out(const JobSpec& spec, const std::optional<SchedulerJob>& job);

/// Those hosts, in the job as its nodes. Pure. Error: one is not in the job, or spec.launcher does not allow it.
Result<Allocation> find_allocation(const JobSpec& spec, Allocation hosts,
                                   const std::optional<SchedulerJob>& job, const std::string& hostname);

}  // namespace ddl::launcher
