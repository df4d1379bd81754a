// The messages between the head and its agents, one struct each, and what may travel in each direction.
// codec.h turns them into frames. A relay is an agent that starts other agents; the head and a relay are the
// starters of theirs.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "base/deadline.h"
#include "launcher/gloo/gloo_store.h"
#include "launcher/job/clock_offset.h"
#include "launcher/job/job_report.h"
#include "launcher/job/job_spec.h"
#include "launcher/job/rank_activity.h"
#include "launcher/output/output_stream.h"
#include "launcher/plan/launch_plan.h"
#include "launcher/plan/node_facts.h"
#include "launcher/process/node_usage.h"
#include "launcher/process/process_state.h"
#include "launcher/protocol/control_messages.h"
#include "launcher/protocol/elastic_messages.h"
#include "launcher/protocol/event_messages.h"
#include "launcher/protocol/pmix_messages.h"

namespace ddl::launcher::message {

// ---- to a joining agent, on its standard input ----

/// The rendezvous: where the agent that it connects to listens.
struct Join {
  std::vector<std::string> addresses;
  int port = 0;
  std::string key;  ///< of the links, as net::JobKey::to_hex() has it
  bool operator==(const Join&) const = default;
};

using HeadToJoiningAgent = std::variant<Join>;

// ---- both ways ----

/// Sent on every link at intervals, so that a silent loss is noticed.
struct Heartbeat {
  bool operator==(const Heartbeat&) const = default;
};
/// A message to (or from) a node that is reached through a relay. Relays do not read the payload: the
/// endpoint decodes it by its direction.
struct Routed {
  int node = 0;  ///< the number that the side nearer to the head has given it
  std::uint16_t type = 0;
  std::string payload;
  bool operator==(const Routed&) const = default;
};

// ---- head to agent ----

/// Hold this number of further TCP ports for servers of the ranks, and answer PortsHeld. Sent before Launch, if at all.
struct HoldPorts {
  int count = 0;
  bool operator==(const HoldPorts&) const = default;
};
/// What all nodes of the job share. An agent passes it on, unread, to the agents that it has started. Sent before Launch.
struct LaunchJob {
  JobLaunch job;
  bool operator==(const LaunchJob&) const = default;
};
/// Start these ranks. May come again, with ranks that have ended: they are started once more, as the next incarnation.
struct Launch {
  NodeLaunch node;
  bool operator==(const Launch&) const = default;
};
/// The key with which ranks of several nodes prove to each other that they belong together. Sent before
/// Launch.
struct JobKey {
  std::string bytes;
  bool operator==(const JobKey&) const = default;
};
/// Another host; number is the sender's. user "" and port 0: none given.
struct RemoteNode {
  int number = 0;
  std::string name;
  std::string user;
  int port = 0;
  bool operator==(const RemoteNode&) const = default;
};
/// Start the agents of these nodes over ssh, or expect them at a rendezvous if there is a key, and relay
/// messages to and from them.
struct StartAgents {
  std::vector<RemoteNode> nodes;
  SshSettings ssh;
  std::string key;    ///< of the links, as net::JobKey::to_hex() has it; "": they are started over ssh
  std::string nonce;  ///< in the greetings of the agents that are expected
  bool operator==(const StartAgents&) const = default;
};
/// Forward a signal to every rank's process group, and do nothing else.
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
/// The head has written this many bytes of a rank's stream: as many more may be sent.
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
/// Answer with Activity.
struct AskActivity {
  std::int64_t id = 0;
  /// The agent looks at once and again after this time, and answers then: what has not changed meanwhile has lasted for
  /// so long. 0: it looks once.
  Seconds pause_seconds;
  int max_tensors = 0;  ///< of each rank, the oldest ones
  bool counts = false;  ///< also what ranks and node have used so far
  bool operator==(const AskActivity&) const = default;
};
/// The store's answer to AskGlooStore with this id.
struct GlooStoreAnswered {
  std::int64_t id = 0;
  GlooAnswer answer;
  bool operator==(const GlooStoreAnswered&) const = default;
};
/// Another host was lost: tell the ranks, which may wait for those that ran there. An End comes next.
struct HostLost {
  std::string host;
  int rank = 0;  ///< one that ran there
  std::int64_t pid = 0;
  std::string text;  ///< which ranks ran there, and why it counts as lost
  bool operator==(const HostLost&) const = default;
};
/// Every rank of the job has ended: end the processes that they left, send the rest of the output, answer
/// Finished.
struct Finish {
  bool operator==(const Finish&) const = default;
};

/// What agents pass on to all agents that they have started.
using ForAllAgents = std::variant<LaunchJob>;

using HeadToAgent =
    std::variant<Heartbeat, Routed, JobKey, StartAgents, HoldPorts, LaunchJob, Launch, Signal, End, StdinData,
                 StdinEof, OutputCredit, Pausing, AskActivity, Finish, PmixFenceDone, PmixModex,
                 PmixModexData, PmixNames, PmixEvent, PmiBarrierDone, ForwardedAnswer, AskEvents,
                 RecordTimeline, GlooStoreAnswered, HostLost, ElasticPlan, ElasticChange, KillRank>;

// ---- agent to head: what its starter reads ----

/// The first message: what the node is.
struct Facts {
  NodeFacts facts;
  bool operator==(const Facts&) const = default;
};
/// The rendezvous that StartAgents asked for listens on this port.
struct RendezvousReady {
  int port = 0;
  bool operator==(const RendezvousReady&) const = default;
};
/// An agent that this one should have started did not come up, or is lost. why is without the node's name.
struct AgentDown {
  int node = 0;
  std::string why;
  bool operator==(const AgentDown&) const = default;
};
/// The node cannot go on (no PMIx server, the spawner died): its ranks are gone or being killed.
struct AgentFailed {
  std::string text;
  bool lost = false;   ///< true: something that ran was lost; false: nothing could be started
  int end_signal = 0;  ///< with which a resource manager ends the job, whose ranks will still report; 0: none
  bool operator==(const AgentFailed&) const = default;
};
/// Nothing of the job is left on the node; the agent ends next.
struct Finished {
  int leftovers_ended = 0;
  NodeUsage usage;
  bool operator==(const Finished&) const = default;
};

// ---- agent to head: what only the head reads ----

struct RankStarted {
  int rank = 0;
  int incarnation = 0;  ///< NodeLaunch::incarnation
  std::int64_t pid = 0;
  bool operator==(const RankStarted&) const = default;
};
/// A rank's binding as the kernel has it after exec. Sent if JobLaunch::report_bindings, or if binding
/// failed.
struct RankBound {
  int rank = 0;
  KernelBinding binding;
  int cpu_error = 0;     ///< errno of binding it to CPUs; 0: none
  int memory_error = 0;  ///< the same of memory
  bool operator==(const RankBound&) const = default;
};
/// The GPUs that a rank sees. Sent if JobLaunch::report_bindings and the plan gives it GPUs whose vendor has a
/// runtime that can be asked.
struct VisibleGpus {
  int rank = 0;
  bool is_known = false;
  std::vector<SeenGpu> gpus;  ///< in the runtime's order
  std::string failure;        ///< why they are not known; "": the node has no such runtime
  bool operator==(const VisibleGpus&) const = default;
};
/// Another ddlrun (this process on this host) has ranks of the same scheduler's job on the node, perhaps on the
/// same CPUs.
struct NodeShared {
  std::string host;
  std::int64_t pid = 0;
  bool operator==(const NodeShared&) const = default;
};
/// A rank has reached a step of its start; for --verbose.
struct RankProgress {
  enum class Step { kInitialised, kFirstCollective };
  int rank = 0;
  Step step = Step::kInitialised;
  bool operator==(const RankProgress&) const = default;
};
/// A rank was stopped by a signal that ddlrun did not forward (signal is its number), or was continued (0).
struct RankStopped {
  int rank = 0;
  int signal = 0;
  bool operator==(const RankStopped&) const = default;
};
/// Some rank of this node has waited for this long, in a call of libddl or for a named tensor.
struct Stalled {
  Seconds seconds;
  bool operator==(const Stalled&) const = default;
};
/// What the ranks of this node do.
struct Activity {
  std::int64_t id = 0;  ///< of AskActivity
  std::vector<RankActivity> ranks;
  NodeUsage usage;  ///< only if it was asked for
  AnswerTimes times{};
  bool operator==(const Activity&) const = default;
};
/// The rank has ended, or could not be started: then outcome.kind is kStartFailed, exit_code is 126 or 127 as
/// a shell has it, and RankStarted may or may not have come before.
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
/// A rank called MPI_Comm_spawn or PMIx_Spawn, and was given an error.
struct SpawnRefused {
  int rank = 0;
  bool operator==(const SpawnRefused&) const = default;
};
/// A rank joins the job, and has this library of an MPI loaded.
struct MpiLoaded {
  int rank = 0;
  std::string path;
  std::int64_t bytes = 0;  ///< of the file
  bool operator==(const MpiLoaded&) const = default;
};
/// The command of --preemption-watch has ended: the node will be taken away.
struct Preemption {
  std::string failure;  ///< why nobody will know when, as a sentence; "": it has ended with 0
  bool operator==(const Preemption&) const = default;
};
/// Ranks use PyTorch's store, which looks up the names of addresses, and no name server has answered for this one.
struct NamesUnanswered {
  std::string address;
  bool operator==(const NamesUnanswered&) const = default;
};
/// The answer to HoldPorts: as many as the node has, so there may be fewer.
struct PortsHeld {
  std::vector<int> ports;
  bool operator==(const PortsHeld&) const = default;
};
/// Somebody who does not belong to the job listens on a port of NodeLaunch::server_ports.
struct PortTaken {
  std::string how;  ///< a sentence without the node's name
  bool operator==(const PortTaken&) const = default;
};
/// A rank has asked the rendezvous store of Horovod's Gloo. Answered by GlooStoreAnswered.
struct AskGlooStore {
  std::int64_t id = 0;
  GlooRequest request;
  bool operator==(const AskGlooStore&) const = default;
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

/// What an agent's starter reads. AgentFailed and Finished go on to the head.
using FleetReport = std::variant<Heartbeat, Facts, Routed, RendezvousReady, AgentDown, AgentFailed, Finished>;
/// What the head reads of every node that has answered.
using NodeReport =
    std::variant<AgentFailed, Finished, RankStarted, RankBound, VisibleGpus, NodeShared, RankProgress,
                 RankStopped, Stalled, Activity, RankEnded, AbortRequested, SpawnRefused, MpiLoaded,
                 NamesUnanswered, Preemption, StdinCredit, StdinClosed, OutputChunk, PmixFence, PmixModex,
                 PmixModexData, PmixPublish, PmixLookup, PmixUnpublish, PmixEvent, PmiBarrier,
                 ForwardedRequest, Events, PortsHeld, PortTaken, AskGlooStore, ElasticJoin, ElasticFinished>;
/// All that an agent sends: FleetReport and NodeReport together.
using AgentToHead =
    std::variant<Heartbeat, Facts, Routed, RendezvousReady, AgentDown, AgentFailed, Finished, RankStarted,
                 RankBound, VisibleGpus, NodeShared, RankProgress, RankStopped, Stalled, Activity, RankEnded,
                 AbortRequested, SpawnRefused, MpiLoaded, NamesUnanswered, Preemption, StdinCredit,
                 StdinClosed, OutputChunk, PmixFence, PmixModex, PmixModexData, PmixPublish, PmixLookup,
                 PmixUnpublish, PmixEvent, PmiBarrier, ForwardedRequest, Events, PortsHeld, PortTaken,
                 AskGlooStore, ElasticJoin, ElasticFinished>;

}  // namespace ddl::launcher::message
