// Which nodes the job may use, with how many slots, and their origin: -H, a hostfile, a Slurm job, or the default.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "launcher/job/job_spec.h"
#include "launcher/job/slurm_job.h"

namespace ddl::launcher {

/// One node. Text from the user has passed the checks of host_name.h, so that it can be an argument of ssh.
struct AllocatedNode {
  std::string name;  ///< as the user or the resource manager writes it; an IPv6 address without brackets
  std::optional<int> slots;      ///< ranks it takes; nullopt: as many as its agent finds
  std::optional<int> max_slots;  ///< never more ranks than this, also with --oversubscribe; at least slots
  /// How many ranks in total it takes without --oversubscribe, if that is more than its slots. In a Slurm job slots
  /// are the tasks that srun would start, and this is the larger of CPUs and GPUs. nullopt: as slots.
  std::optional<int> spare_slots;
  std::optional<std::string> user;  ///< to log in as; nullopt: as in ssh's configuration
  std::optional<int> port;  ///< of its sshd; nullopt: JobSpec::ssh_port, else as in ssh's configuration
  bool operator==(const AllocatedNode&) const = default;
};

/// More ranks than this are treated as a typing error.
inline constexpr int kMaxRanks = 1'000'000;

struct Allocation {
  std::vector<AllocatedNode> nodes;  ///< in the order in which they were named; no name twice; never empty
  std::optional<SlurmJob> slurm;     ///< the Slurm job that the nodes belong to
  std::string origin;                ///< for messages: "this machine", "-H", "hosts.txt", "standard input"
};

/// The machine that ddlrun runs on, under its own name.
Allocation local_allocation(const std::string& hostname);

/// The nodes that spec.hosts or spec.hostfile names, else those of spec.placed_ranks, without those of
/// spec.hosts_exclude; the machine itself where the spec has none of them. Pure. hostfile_text: what spec.hostfile
/// holds, read by the caller; unused without one.
/// Error (kInvalidArgument): an invalid entry, after "hosts.txt:7: " or "-H: "; or no node is left.
Result<Allocation> make_allocation(const JobSpec& spec, const std::string& hostfile_text,
                                   const std::string& hostname);

/// Removes the nodes that the list names (--hosts-exclude), "" for none. Pure. Error (kInvalidArgument): an invalid
/// entry, or no node is left.
Result<Allocation> without_hosts(Allocation allocation, const std::string& excluded);

/// The number of ranks if -np is missing: --ranks-per-node on every node, or the sum of the slots that were given;
/// in a Slurm job of which all nodes are used, without -H, hostfile and --ranks-per-node, implied_num_ranks() of the
/// job. Error (kInvalidArgument): the number of slots of a node, which is named, is unknown; or there are more than kMaxRanks.
/// Pure.
Result<int> implied_num_ranks(const JobSpec& spec, const Allocation& allocation);

/// Whether this node is the machine called hostname, so that its agent can be forked: "localhost", a loopback
/// address, the name itself or its first label. A node with a user or a port of its own is not: it must be reached
/// by ssh.
bool is_this_machine(const AllocatedNode& node, const std::string& hostname);

/// The number of the Slurm job whose CPUs the ranks use, however they are started; "" if none. "" also for a ddlrun
/// inside a rank of another ddlrun: it uses the CPUs of that rank. own: this process's environment. Pure.
std::string slurm_job_of_ranks(const Allocation& allocation, const Environment& own);

/// The nodes of a Slurm job. The slots of a node are its tasks if the user asked for a number of tasks, else its
/// GPUs, else its tasks; its spare slots are the largest of slots, CPUs and GPUs. Pure.
Allocation allocation_of(const SlurmJob& job);

/// The nodes of the job that the user has chosen with -H or a hostfile, in that order, with the slots that were
/// given there. Pure. hostname: of this machine, to which "localhost" refers if it is a node of the job.
/// Error (kInvalidArgument): a chosen node does not belong to the job, or has a user or a port.
Result<Allocation> allocation_of(const SlurmJob& job, const Allocation& chosen, const std::string& hostname);

/// The number of ranks if -np is missing: the tasks that were asked for, else the GPUs, else one for each node.
int implied_num_ranks(const SlurmJob& job);

/// Why a job has no hosts to run on.
struct AllocationError {
  enum class Option { kLauncher, kHosts, kFanOut };
  std::string message;
  std::string hint;  ///< what to do instead
  Option option =
      Option::kLauncher;  ///< the option that is wrong; kHosts: the hosts, wherever they were given
};

/// The Slurm job that ddlrun runs in, if spec.launcher starts the ranks in it. Pure. Error: the job cannot be used,
/// or spec.launcher needs one and there is none.
tl::expected<std::optional<SlurmJob>, AllocationError> slurm_job_to_use(const JobSpec& spec,
                                                                        const Environment& environment);

/// make_allocation(), and in a Slurm job its nodes, or those of them that the spec names. Pure. Error: also what
/// spec.launcher or spec.fan_out does not allow.
tl::expected<Allocation, AllocationError> find_allocation(const JobSpec& spec,
                                                          const std::string& hostfile_text,
                                                          const std::optional<SlurmJob>& slurm,
                                                          const std::string& hostname);

}  // namespace ddl::launcher
