// A scheduler, in whose job ddlrun may run: how it is recognised, what it has given, what it tells programs, and what
// starts agents there. One file for each scheduler (slurm.h).
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/environment.h"
#include "base/error.h"
#include "launcher/job/allocation.h"

namespace ddl::launcher {

/// The ranks of a job as a step of the scheduler would have them.
struct SchedulerStep {
  std::vector<std::string> node_names;
  std::vector<std::vector<int>> node_ranks;  ///< of each node, ascending
};

/// Without state; all functions are pure but those about the end of a job. own: the environment of this process.
class Scheduler {
 public:
  virtual ~Scheduler() = default;

  virtual std::string name() const = 0;  ///< "Slurm"
  virtual std::string starter()
      const = 0;  ///< its command that starts agents: "srun"; "": they are started by ssh

  // The job that this process is in.

  /// "": in none, as far as one variable says.
  virtual std::string job_id(const Environment& own) const = 0;
  /// nullopt: in none. Error (kInvalidArgument): the variables cannot be parsed or are not complete, or ddlrun cannot
  /// use such a job. The result is not nullopt then, because ranks would silently start on this host, which may be a
  /// login host.
  virtual Result<std::optional<SchedulerJob>> find_job(const Environment& own) const = 0;
  /// Error (kInvalidArgument): this is one of several tasks, each of which would start all ranks.
  virtual Status check_single_task(const Environment& own) const = 0;
  /// This node, as the scheduler calls it; "": as the kernel does.
  virtual std::string node_name(const Environment& own) const = 0;

  // What programs are told.

  /// The variables that are the same for all ranks of a step.
  virtual Environment step_variables(const SchedulerStep& step) const = 0;
  /// The variables that differ, of a node's rank.
  virtual Environment rank_variables(const SchedulerStep& step, int node, int local_rank) const = 0;
  /// The names of variables that describe a node: ranks get the values of their own node, not those of the head.
  virtual std::vector<std::string> node_variables() const = 0;
  /// True for variables that describe another process than a rank: its task number, its binding, and how it reaches
  /// its PMI. A rank would take them for its own.
  virtual bool describes_task(std::string_view variable) const = 0;
  /// On each node it selects the job's GPUs there by variables of the vendors, which differ.
  virtual bool selects_gpus() const = 0;

  // Agents, and mpirun's daemons.

  /// argv of a step with one task on each of these nodes, on which the job has the same CPUs and GPUs: an agent. It
  /// binds nothing, and uses all that the job has there. kLink: of one node; the agent's standard streams are those of
  /// the step. kJoin: all agents read a message::Join from standard input.
  enum class AgentInput { kLink, kJoin };
  virtual std::vector<std::string> agent_command(const SchedulerJob& job,
                                                 const std::vector<std::string>& names, AgentInput input,
                                                 const std::string& path, const std::string& nonce) const = 0;
  /// own, without the variables that starter() reads as options and that would change what an agent needs.
  virtual Environment agent_environment(const Environment& own) const = 0;
  /// The same for an mpirun, which starts its daemons by starter().
  virtual Environment mpirun_environment(const Environment& own) const = 0;
  /// Variables for mpirun alone, if this process is in a step: the whole job's resources.
  virtual Environment mpirun_variables(const SchedulerJob& job, const Environment& own) const = 0;
  /// The command line of a ddlrun that uses a part of a node of its job: "srun --exact ... ddlrun ...".
  virtual std::string command_on_part_of_node() const = 0;
  /// What to do about an error that starter() has printed; "": unknown.
  virtual std::string advice(std::string_view errors) const = 0;

  // The end of a job.

  /// Asks the scheduler, with a deadline, whether it is ending the job, as when the job was cancelled or its time is
  /// over. False also if there is no answer.
  virtual bool is_ending(const std::string& job_id, const Environment& own) const = 0;
  /// Asks, with a deadline, whether the job is a batch job that runs and that its user lets the scheduler start again.
  /// Error: there is no answer.
  virtual Result<bool> may_requeue(const std::string& job_id, const Environment& own) const = 0;
  /// A port on which its daemon listens on every node of a job, as firewalls between them allow; "": it has none.
  virtual std::string node_port() const = 0;
  /// Has the scheduler end the job and start it again from its beginning, with a deadline. Error: it refuses that, or
  /// does not answer.
  virtual Status requeue(const std::string& job_id, const Environment& own) const = 0;
};

/// The option of ddlrun with which an agent reads this.
std::string agent_option(Scheduler::AgentInput input);

/// All, in the order in which they are recognised. The last one is no scheduler: it is in no job and tells nothing.
std::span<const Scheduler* const> schedulers();
inline const Scheduler& no_scheduler() { return *schedulers().back(); }

const Scheduler& scheduler_of(const SchedulerJob& job);
/// That of the allocation's job, else the last one.
const Scheduler& scheduler_of(const Allocation& allocation);
/// The first one whose job this process is in, else the last one.
const Scheduler& scheduler_here(const Environment& own);
/// The job that this process is in; "": none.
std::string job_id_here(const Environment& own);

/// describes_task() of any scheduler: a shell that was started in a job may be used for ranks elsewhere.
bool is_of_scheduler_task(std::string_view variable);

/// The scheduler's job whose CPUs the ranks use, however they are started; "" if none. "" also for a ddlrun inside a
/// rank of another ddlrun: it uses the CPUs of that rank. Pure.
std::string scheduler_job_of_ranks(const Allocation& allocation, const Environment& own);

}  // namespace ddl::launcher
