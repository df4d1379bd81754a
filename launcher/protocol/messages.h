// What head, agent and spawner say to each other. One struct a message; codec.h turns them into frames.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "base/deadline.h"
#include "launcher/job/job_report.h"
#include "launcher/output/output_stream.h"
#include "launcher/plan/launch_plan.h"
#include "launcher/plan/node_facts.h"
#include "launcher/process/child.h"
#include "launcher/process/process_state.h"

namespace ddl::launcher::message {

// ---- head to agent ----

/// Start these ranks. Sent once.
struct Launch {
  NodeLaunch node;
  bool operator==(const Launch&) const = default;
};
/// The key with which ranks of several nodes prove to each other that they belong together. Sent before Launch.
struct JobKey {
  std::string bytes;
  bool operator==(const JobKey&) const = default;
};
/// Another host, as the sender counts them. user "" and port 0: none given.
struct RemoteNode {
  int number = 0;
  std::string name;
  std::string user;
  int port = 0;
  bool operator==(const RemoteNode&) const = default;
};
/// Start the agents of these nodes over ssh, or expect them if there is a key to prove, and pass messages on, up and down.
struct StartAgents {
  std::vector<RemoteNode> nodes;
  int parallel = 1;
  int fan_out = 0;
  Seconds start_timeout_seconds;
  int ssh_port = 0;
  std::string identity_file;
  std::vector<std::string> ssh_args;
  std::vector<std::string> launch_agent;
  std::string remote_path;
  std::string key;    ///< of the links, as net::JobKey::to_hex() has it; "": they are started over ssh
  std::string nonce;  ///< of those that are expected
  bool operator==(const StartAgents&) const = default;
};
/// The expected ones may come, to this port.
struct Gathering {
  int port = 0;
  bool operator==(const Gathering&) const = default;
};
/// To an agent on its standard input: whom to join.
struct Join {
  std::vector<std::string> addresses;
  int port = 0;
  std::string key;  ///< of the links, as net::JobKey::to_hex() has it
  bool operator==(const Join&) const = default;
};
/// Pass a signal on to every rank's process group, and nothing else.
struct Signal {
  int signal = 0;
  bool operator==(const Signal&) const = default;
};
/// Ask all ranks to end with this signal, wait for the grace, then kill every process of the job.
/// A later End with a shorter grace overrides: 0 kills now.
struct End {
  int signal = 0;
  Seconds grace_seconds;
  bool operator==(const End&) const = default;
};
/// Bytes for the standard input of the ranks that read it.
struct StdinData {
  std::string bytes;
  bool operator==(const StdinData&) const = default;
};
struct StdinEof {
  bool operator==(const StdinEof&) const = default;
};
/// The head has handed on this many bytes of a rank's stream: as many more may be sent.
struct OutputCredit {
  int rank = 0;
  OutputStream stream = OutputStream::kStdout;
  std::int64_t bytes = 0;
  bool operator==(const OutputCredit&) const = default;
};
/// The user has stopped ddlrun (^Z): its silence until the next message means nothing.
struct Pausing {
  bool operator==(const Pausing&) const = default;
};
/// Every rank of the job has ended: end what they left behind, send the rest of the output, answer Finished.
struct Finish {
  bool operator==(const Finish&) const = default;
};

// ---- agent to head ----

/// First message: what the node is.
struct Facts {
  NodeFacts facts;
  bool operator==(const Facts&) const = default;
};
struct RankStarted {
  int rank = 0;
  std::int64_t pid = 0;
  bool operator==(const RankStarted&) const = default;
};
/// What the kernel says of a rank after its exec. Sent if NodeLaunch::reports_bindings, or if it could not be bound.
struct RankBound {
  int rank = 0;
  KernelBinding binding;
  int cpu_error = 0;     ///< errno of binding it to CPUs; 0: none
  int memory_error = 0;  ///< the same of memory
  bool operator==(const RankBound&) const = default;
};
/// Another ddlrun, this process on this host, has ranks of the same Slurm job on the node, on CPUs that ours may have as well.
struct NodeShared {
  std::string host;
  std::int64_t pid = 0;
  bool operator==(const NodeShared&) const = default;
};
/// How far a rank has come: for --verbose.
struct RankProgress {
  enum class Step { kInitialised, kFirstCollective };
  int rank = 0;
  Step step = Step::kInitialised;
  bool operator==(const RankProgress&) const = default;
};
/// A rank was stopped by a signal that ddlrun did not forward (signal is its number), or goes on again (0).
struct RankStopped {
  int rank = 0;
  int signal = 0;
  bool operator==(const RankStopped&) const = default;
};
/// The rank will not run. outcome.kind is kStartFailed; exit_code is 126 or 127 as a shell has it.
/// RankStarted may or may not have come before.
struct RankEnded {
  RankOutcome outcome;  ///< host is filled in by the head
  bool operator==(const RankEnded&) const = default;
};
/// A rank called PMIx_Abort or MPI_Abort.
struct AbortRequested {
  int rank = 0;
  int exit_code = 0;
  std::string text;
  bool operator==(const AbortRequested&) const = default;
};
/// The node cannot go on (no PMIx server, the spawner died): its ranks are gone or being killed.
struct AgentFailed {
  std::string text;
  bool lost = false;  ///< true: something that ran was lost; false: nothing could be started
  int told_to_end =
      0;  ///< 0, or the signal by which a resource manager ends the job: its ranks will still be heard of
  bool operator==(const AgentFailed&) const = default;
};
/// Up: an agent that this one has started, or should have, is no more; why is without the node's name.
struct AgentDown {
  int node = 0;
  std::string why;
  bool operator==(const AgentDown&) const = default;
};
/// The ranks took this many bytes of standard input.
struct StdinCredit {
  std::int64_t bytes = 0;
  bool operator==(const StdinCredit&) const = default;
};
/// No rank reads standard input any more.
struct StdinClosed {
  bool operator==(const StdinClosed&) const = default;
};
/// Nothing of the job is left on the node; the agent ends next.
struct Finished {
  int leftovers_ended = 0;
  bool operator==(const Finished&) const = default;
};

// ---- both ways ----

/// "Still here": said on every connection once a second, so that a silent loss is noticed.
struct Heartbeat {
  bool operator==(const Heartbeat&) const = default;
};

/// A message for a node that is reached through others (down), or from it (up).
struct Routed {
  int node = 0;  ///< as whoever is nearer to the head counts
  std::uint16_t type = 0;
  std::string payload;
  bool operator==(const Routed&) const = default;
};

// ---- PMIx between nodes: an agent asks, the head answers or passes on ----

/// A value under a key, packed by the PMIx library of a node: bytes to everybody else.
struct PmixPair {
  std::string key;
  std::string value;
  int publisher = 0;  ///< rank
  bool operator==(const PmixPair&) const = default;
};
/// This node's ranks of a group have all called fence; data is what they had put. Answered by PmixFenceDone.
struct PmixFence {
  std::vector<int> ranks;  ///< the group, ascending; empty: all ranks of the job
  std::string data;
  bool operator==(const PmixFence&) const = default;
};
/// All nodes of the group have said PmixFence; data is theirs, one after the other in the order of the nodes.
struct PmixFenceDone {
  std::vector<int> ranks;
  std::string data;
  bool operator==(const PmixFenceDone&) const = default;
};
/// What has this rank put? Goes to the rank's node by way of the head, and the answer back.
struct PmixModex {
  std::int64_t id = 0;  ///< the asking agent's own
  int node = 0;         ///< who asks; filled in by the head
  int rank = 0;
  bool operator==(const PmixModex&) const = default;
};
struct PmixModexData {
  std::int64_t id = 0;
  int node = 0;    ///< to whom
  int status = 0;  ///< of the PMIx library, which is the same on all nodes
  std::string data;
  bool operator==(const PmixModexData&) const = default;
};
/// Answered by PmixNames.
struct PmixPublish {
  std::int64_t id = 0;
  std::vector<PmixPair> pairs;
  bool first_read_only = false;  ///< each value goes with its first reader
  bool operator==(const PmixPublish&) const = default;
};
/// Answered by PmixNames.
struct PmixLookup {
  std::int64_t id = 0;
  std::vector<std::string> keys;
  bool wait = false;        ///< until all keys are there
  int timeout_seconds = 0;  ///< of wait; 0: none
  bool operator==(const PmixLookup&) const = default;
};
/// Answered by PmixNames.
struct PmixUnpublish {
  std::int64_t id = 0;
  int publisher = 0;
  std::vector<std::string> keys;  ///< empty: all of the publisher's
  bool operator==(const PmixUnpublish&) const = default;
};
struct PmixNames {
  enum class Status { kDone, kDuplicate, kPartial, kNotFound, kTimedOut };
  std::int64_t id = 0;
  Status status = Status::kDone;
  std::vector<PmixPair> found;
  bool operator==(const PmixNames&) const = default;
};
/// A rank has sent an event (PMIx_Notify_event); the head passes it to all other nodes.
struct PmixEvent {
  int status = 0;
  int source = 0;     ///< rank
  int range = 0;      ///< pmix_data_range_t
  std::string infos;  ///< packed
  bool operator==(const PmixEvent&) const = default;
};

// ---- PMI-1 between nodes ----

struct PmiPair {
  std::string key;
  std::string value;
  bool operator==(const PmiPair&) const = default;
};
/// All of this node's ranks wait in a barrier; pairs is what they have put since the last one. Answered by PmiBarrierDone.
struct PmiBarrier {
  std::vector<PmiPair> pairs;
  bool operator==(const PmiBarrier&) const = default;
};
/// The ranks of all nodes have come to it; pairs is what all of them have put.
struct PmiBarrierDone {
  std::vector<PmiPair> pairs;
  bool operator==(const PmiBarrierDone&) const = default;
};

// ---- agent to spawner ----

/// Start a process. Its standard input, output and error travel with it as descriptors, and the memfd with the job's
/// key where it inherits that.
struct Spawn {
  ChildSpec child;
  bool operator==(const Spawn&) const = default;
};
/// Send a signal to the process group of every running child.
struct SignalChildren {
  int signal = 0;
  bool operator==(const SignalChildren&) const = default;
};
/// Ask every descendant to end by a signal; those that are stopped go on, so that they hear it.
struct AskToEnd {
  int signal = 0;
  bool operator==(const AskToEnd&) const = default;
};
/// SIGKILL to every descendant, again and again until none is left.
struct KillAll {
  bool operator==(const KillAll&) const = default;
};
/// Say Leftovers, if any process is left, and AllGone as soon as none is.
struct ReportGone {
  bool operator==(const ReportGone&) const = default;
};

// ---- spawner to agent ----

struct ChildStarted {
  int rank = 0;
  std::int64_t pid = 0;
  KernelBinding binding;  ///< if ChildSpec::reports_binding
  int cpu_error = 0;      ///< errno of binding it to CPUs; 0: none
  int memory_error = 0;   ///< the same of memory
  bool operator==(const ChildStarted&) const = default;
};
/// What failed between fork and exec.
struct ChildFailed {
  enum class Stage { kFork, kBindCpus, kBindMemory, kRedirect, kWorkdir, kExec };
  int rank = 0;
  Stage stage = Stage::kExec;
  int error = 0;  ///< errno
  bool operator==(const ChildFailed&) const = default;
};
struct ChildEnded {
  int rank = 0;
  int wait_status = 0;  ///< as from waitpid(2)
  Seconds run_seconds;
  bool operator==(const ChildEnded&) const = default;
};
struct Leftovers {
  int count = 0;
  bool operator==(const Leftovers&) const = default;
};
struct AllGone {
  bool operator==(const AllGone&) const = default;
};
/// A child was stopped by a signal (signal is its number), or goes on again (signal is 0).
struct ChildStopped {
  int rank = 0;
  int signal = 0;
  bool operator==(const ChildStopped&) const = default;
};

using Any =
    std::variant<Launch, Signal, End, StdinData, StdinEof, OutputCredit, Finish, Facts, RankStarted,
                 RankEnded, AbortRequested, AgentFailed, StdinCredit, StdinClosed, Finished, OutputChunk,
                 Spawn, SignalChildren, AskToEnd, KillAll, ReportGone, ChildStarted, ChildFailed, ChildEnded,
                 Leftovers, AllGone, Heartbeat, Pausing, RankStopped, ChildStopped, PmixFence, PmixFenceDone,
                 PmixModex, PmixModexData, PmixPublish, PmixLookup, PmixUnpublish, PmixNames, PmixEvent,
                 JobKey, StartAgents, Gathering, Join, PmiBarrier, PmiBarrierDone, Routed, AgentDown,
                 RankProgress, RankBound, NodeShared>;

}  // namespace ddl::launcher::message
