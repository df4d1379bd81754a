// Which nodes the job may use, with how many slots, and their origin: -H, a hostfile, the job of a scheduler, or the
// default.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "launcher/job/job_spec.h"

namespace ddl::launcher {

/// One node. Text from the user has passed the checks of host_name.h, so that it can be an argument of ssh.
struct AllocatedNode {
  std::string name;  ///< as the user or the resource manager writes it; an IPv6 address without brackets
  std::optional<int> slots;      ///< ranks it takes; nullopt: as many as its agent finds
  std::optional<int> max_slots;  ///< never more ranks than this, also with --oversubscribe; at least slots
  /// How many ranks in total it takes without --oversubscribe, if that is more than its slots. In a scheduler's job
  /// slots are the tasks that it would start, and this is the larger of CPUs and GPUs. nullopt: as slots.
  std::optional<int> spare_slots;
  std::optional<std::string> user;  ///< to log in as; nullopt: as in ssh's configuration
  std::optional<int> port;  ///< of its sshd; nullopt: SshSettings::port, else as in ssh's configuration
  /// Which CPUs its ranks get by a hostfile of MPICH, Intel MPI or Grid Engine, which ddlrun does not use; "": none.
  std::string unused_binding;
  bool operator==(const AllocatedNode&) const = default;
};

/// More ranks than this are treated as a typing error.
inline constexpr int kMaxRanks = 1'000'000;

/// A node of a scheduler's job.
struct SchedulerNode {
  std::string name;
  int cpus = 0;   ///< CPUs of the job on this node; 0: unknown
  int tasks = 0;  ///< tasks that the scheduler would start there, at least 1
  int gpus = 0;   ///< GPUs of the job on this node; 0: none or unknown
  bool operator==(const SchedulerNode&) const = default;
};

/// The job of a scheduler that ddlrun runs in.
struct SchedulerJob {
  std::string scheduler;  ///< Scheduler::name()
  std::string id;
  std::vector<SchedulerNode> nodes;  ///< never empty
  std::optional<int> num_tasks;      ///< if the user asked for a number
  std::string partition;             ///< "" if unknown
};

/// The job with its resources: "Slurm job 4711 (2 nodes, 8 tasks, 16 GPUs, 256 CPUs)".
std::string described(const SchedulerJob& job);
/// The node of this name; null: the job has none.
const SchedulerNode* find_node(const SchedulerJob& job, const std::string& name);

struct Allocation {
  std::vector<AllocatedNode> nodes;  ///< in the order in which they were named; no name twice; never empty
  std::optional<SchedulerJob> job;   ///< that the nodes belong to
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
/// in the job of a scheduler of which all nodes are used, without -H, hostfile and --ranks-per-node, implied_num_ranks() of the
/// job. Error (kInvalidArgument): the number of slots of a node, which is named, is unknown; or there are more than kMaxRanks.
/// Pure.
Result<int> implied_num_ranks(const JobSpec& spec, const Allocation& allocation);

/// Whether this node is the machine called hostname, so that its agent can be forked: "localhost", a loopback
/// address, the name itself or its first label. A node with a user or a port of its own is not: it must be reached
/// by ssh.
bool is_this_machine(const AllocatedNode& node, const std::string& hostname);

}  // namespace ddl::launcher
