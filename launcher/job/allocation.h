// Which nodes the job may use, with how many slots, and who said so: -H, a hostfile, a Slurm job, or nobody.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "launcher/job/job_spec.h"
#include "launcher/job/slurm_job.h"

namespace ddl::launcher {

/// One node. Whatever comes from a person has passed the checks of host_name.h, so that it can be a word of ssh's.
struct AllocatedNode {
  std::string name;  ///< as the user or the resource manager calls it; an IPv6 address without brackets
  std::optional<int> slots;      ///< ranks it takes; nullopt: as many as its agent finds
  std::optional<int> max_slots;  ///< never more ranks than this, also with --oversubscribe; at least slots
  /// So many ranks beyond its slots, all in all, are fine without --oversubscribe: its CPUs, where slots are what somebody
  /// else would start there; nullopt: none.
  std::optional<int> spare_slots;
  std::optional<std::string> user;  ///< to log in as; nullopt: whom ssh's configuration says
  std::optional<int> port;  ///< of its sshd; nullopt: JobSpec::ssh_port, else what ssh's configuration says
  bool operator==(const AllocatedNode&) const = default;
};

/// More ranks than this are taken for a slip of the hand.
inline constexpr int kMaxRanks = 1'000'000;

struct Allocation {
  std::vector<AllocatedNode> nodes;  ///< in the order in which they were named; no name twice; never empty
  std::optional<SlurmJob> slurm;     ///< whose nodes they are, if they are Slurm's
  std::string origin;                ///< for messages: "this machine", "-H", "hosts.txt", "standard input"
};

/// The machine that ddlrun runs on, under its own name.
Allocation local_allocation(const std::string& hostname);

/// The nodes that spec.hosts or spec.hostfile names, without those of spec.hosts_exclude; the machine itself where the
/// spec has neither. Pure. hostfile_text: what spec.hostfile holds, read by the caller; unused without one.
/// Error (kInvalidArgument): what cannot be meant, after "hosts.txt:7: " or "-H: "; or that no node is left.
Result<Allocation> make_allocation(const JobSpec& spec, const std::string& hostfile_text,
                                   const std::string& hostname);

/// Leaves out the nodes that the list names (--hosts-exclude), "" for none. Pure. Error (kInvalidArgument): what cannot be meant,
/// or that no node is left.
Result<Allocation> without_hosts(Allocation allocation, const std::string& excluded);

/// How many ranks are meant where -np is missing: --ranks-per-node on every node, or the sum of the slots that were
/// given; in a Slurm job of which the user chose nothing, as many as the job says. Error (kInvalidArgument): the number of
/// slots of some node is unknown; it is named. Pure.
Result<int> implied_num_proc(const JobSpec& spec, const Allocation& allocation);

/// Whether this node is the machine called hostname, so that its agent can be forked: "localhost", a loopback address,
/// the name itself or its first label. One with a user or a port of its own is not: that is ssh's to honour.
bool is_this_machine(const AllocatedNode& node, const std::string& hostname);

// The nodes of a Slurm job as those of ours.

/// Its nodes with their slots: the tasks of a node if some were asked for, else its GPUs, else its tasks; up to its CPUs or
/// GPUs, whichever are more, without --oversubscribe. Pure.
Allocation allocation_of(const SlurmJob& job);

/// Those of the job that the user has chosen with -H or a hostfile, in that order, with the slots that were given there. Pure.
/// hostname: this machine's, which "localhost" means if it is one of them.
/// Error (kInvalidArgument): one that is not the job's, or that is to be reached as somebody else.
Result<Allocation> allocation_of(const SlurmJob& job, const Allocation& chosen, const std::string& hostname);

/// How many ranks are meant where -np is missing: the tasks that were asked for, else the GPUs, else one for each node.
int implied_num_proc(const SlurmJob& job);

// The hosts of a job, wherever ddlrun runs.

/// Why a job has no hosts that it could run on.
struct AllocationError {
  enum class Option { kLauncher, kHosts, kFanOut };
  std::string message;
  std::string hint;  ///< what to do instead
  Option option =
      Option::kLauncher;  ///< the option that is wrong; kHosts: the hosts, wherever they were given
};

/// The Slurm job that ddlrun runs in, if spec.launcher starts the ranks in it. Pure. Error: the job cannot be used, or
/// spec.launcher needs one and there is none.
tl::expected<std::optional<SlurmJob>, AllocationError> slurm_job_to_use(const JobSpec& spec,
                                                                        const Environment& environment);

/// make_allocation(), and in a Slurm job its nodes, or those of them that the spec names. Pure. Error: also what
/// spec.launcher or spec.fan_out does not allow.
tl::expected<Allocation, AllocationError> find_allocation(const JobSpec& spec,
                                                          const std::string& hostfile_text,
                                                          const std::optional<SlurmJob>& slurm,
                                                          const std::string& hostname);

}  // namespace ddl::launcher
