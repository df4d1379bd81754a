// The job that the user asked for, validated.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "affinity/plan/binding_plan.h"
#include "base/deadline.h"
#include "contract/event_ring.h"
#include "launcher/job/elastic_spec.h"
#include "launcher/job/rank_placement.h"
#include "launcher/job/rank_roles.h"
#include "launcher/job/rankfile.h"
#include "launcher/process/shell_attributes.h"

namespace ddl::launcher {

/// One -x: NAME=VALUE sets the variable for the ranks; a value of nullopt passes the head's own value.
struct EnvironmentExport {
  std::string name;
  std::optional<std::string> value;
};

/// Which ranks read ddlrun's standard input; the others read /dev/null.
enum class StdinTarget { kRank0, kAll, kNone };

/// The order in which ranks are assigned to slots: all of a node before those of the next one, or one of each node
/// in turn.
enum class MapBy { kSlot, kNode };

/// The order in which placed ranks are numbered: as they were placed, node by node, or one of each node in turn.
enum class RankBy { kPlaced, kSlot, kNode };

/// How agents are started. kAuto: by a scheduler in its job; elsewhere forked on this machine and over ssh on others.
/// kLocal: forked. kSsh: over ssh, also on this machine. kSrun and kMpirun: there are no agents; one srun or mpirun
/// starts the ranks.
enum class LauncherChoice { kAuto, kLocal, kSsh, kSrun, kMpirun };

/// --framework: whose variables ranks get, by which a framework finds its processes. kAuto: those that can be set at the
/// same time. kMpi: none beside what MPI programs need. kNone: ddlrun neither sets nor removes any.
enum class Framework { kAuto, kTorch, kTensorflow, kHorovod, kDeepspeed, kJax, kMxnet, kMpi, kNone };

/// --visible-gpus: which GPUs a rank sees. kOwn: those that are its own. kNode: those of all ranks of its node, its own
/// where its local rank is the index. kByFramework: as the programs of JobSpec::framework expect it.
enum class GpuView { kByFramework, kOwn, kNode };

/// How agents are started on other hosts: over ssh, or by a command that replaces it. The last three also hold where a
/// scheduler starts them.
struct SshSettings {
  int port = 0;                   ///< for hosts without a port of their own; 0: as in ssh's configuration
  std::string identity_file;      ///< "" or absolute
  std::vector<std::string> args;  ///< further arguments of ssh, before the host's name
  std::vector<std::string> launch_agent;  ///< empty, or a command that replaces ssh; %h is the host
  int fan_out = 0;                        ///< hosts that one agent connects to; 0: the head connects to all
  std::string remote_path;  ///< of ddlrun there: absolute, or a bare name; "" in a JobSpec: as here
  int parallel = 32;        ///< agents that are being started at the same time
  Seconds start_timeout_seconds = 30;  ///< for each host, until its agent has answered; 0: none
  bool operator==(const SshSettings&) const = default;
};

/// One job, as the user asked for it. Made by cli/ from argv and the YAML file; constant afterwards.
struct JobSpec {
  std::string name;                        ///< of --job-name, or what a person would call the command
  std::vector<std::string> command;        ///< argv of every rank; command[0] is searched in the ranks' PATH
  int num_ranks = 0;                       ///< at least 1; 0 for --check-hosts
  std::vector<EnvironmentExport> exports;  ///< in the order given; a later one wins
  Framework framework = Framework::kAuto;
  RankRoles roles;                ///< of all num_ranks, or empty
  bool serves_gloo = false;       ///< ranks get a rendezvous for Horovod that was built with Gloo
  bool as_horovod = false;        ///< Python of the ranks finds ddl by the name horovod
  std::string workdir;            ///< absolute; where every rank starts
  ShellAttributes shell;          ///< of the ranks on all hosts
  double timeout_seconds = 0;     ///< 0: none; then the job is ended and ddlrun exits with 124
  int end_with_pid = 0;           ///< the process of the head's host with which the job ends; 0: with none
  double kill_grace_seconds = 5;  ///< between the first signal that asks ranks to end and SIGKILL
  double stall_warning_seconds = 60;  ///< after which a wait of ranks for others is reported; 0: never
  double stall_shutdown_seconds = 0;  ///< after which the job is ended for such a wait; 0: never
  std::string timeline_file;          ///< "" or absolute: where a timeline of all ranks is written at the end
  std::uint64_t timeline_bytes = contract::kUsualTimelineBytes;  ///< of it at most, before it is compressed
  StdinTarget stdin_target = StdinTarget::kRank0;
  ElasticSpec elastic;
  GenerationNumber generation;  ///< which start of an elastic job's ranks this is
  /// Of a launch of an elastic job: its ranks that are started. The others, for whom there is room, run already, or
  /// are not wanted. Empty: all.
  std::vector<int> started_ranks;
  std::vector<int> output_labels;  ///< of its ranks: the numbers before their output. Empty: the ranks
  /// With serves_gloo: of its ranks, in the first generation of the job.
  std::vector<RankPlacement> first_placements;
  Requeue requeue;  ///< of a launch of an elastic job

  // Which hosts, and how many ranks on each.
  std::string hosts;                  ///< the text of -H; "": it was not given
  std::string hosts_given_by = "-H";  ///< for messages: the option as it was typed, or "job.yaml:3"
  std::string hostfile;               ///< the path of the hostfile; "": none; "-": standard input
  std::string hosts_exclude;          ///< hosts that are not used, as in -H
  MapBy map_by = MapBy::kSlot;
  RankBy rank_by = RankBy::kPlaced;
  int ranks_per_node = 0;  ///< 0: by slots; otherwise this number on each node, maybe fewer on the last one
  std::string rankfile;    ///< the path of the rankfile; "": none
  Rankfile placed_ranks;   ///< of the rankfile: all ranks that take slots, in place of map_by; empty: none
  bool oversubscribe = false;  ///< more ranks than slots are allowed

  affinity::BindingPolicy binding;  ///< where on its node each rank runs
  GpuView gpu_view = GpuView::kByFramework;
  bool report_bindings = false;  ///< the binding of each rank, as the kernel states it, is shown
  bool measures_use = false;     ///< agents watch GPUs and the clocks of cores, for a report or metrics
  bool strict_bind = false;      ///< a rank that cannot be bound as planned is an error

  // How agents are started on them.
  LauncherChoice launcher = LauncherChoice::kAuto;
  bool starts_mpirun = false;  ///< the one rank is mpirun itself, which starts the user's ranks
  SshSettings ssh;
  std::vector<std::string> network_interfaces;  ///< names that libddl may use; empty: all

  std::string
      output_directory;    ///< "" or where rank.<padded>/{stdout,stderr} are written, besides the terminal
  bool tag_output = true;  ///< "[rank]<stdout>:" before every line
  bool merges_stderr = false;     ///< ranks' standard error is shown on standard output
  bool timestamp_output = false;  ///< the time at which a line was written, before every line

  bool verbose = false;
  bool quiet = false;  ///< no notes of ddlrun's own; errors and the ranks' output are still shown
};

/// Whether agents of ddlrun start the ranks, not srun or mpirun. Pure.
constexpr bool has_agents(const JobSpec& spec) {
  return spec.launcher != LauncherChoice::kSrun && spec.launcher != LauncherChoice::kMpirun;
}

/// Whether consecutive ranks are on different nodes, as far as there are ranks on several. Pure.
constexpr bool numbers_by_node(const JobSpec& spec) {
  return spec.rank_by == RankBy::kNode || (spec.rank_by == RankBy::kPlaced && spec.map_by == MapBy::kNode);
}

}  // namespace ddl::launcher
