// What head, agent and spawner say to each other. One struct a message; codec.h turns them into frames.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "launcher/output/output_chunk.h"
#include "launcher/plan/launch_plan.h"
#include "launcher/plan/node_facts.h"
#include "launcher/spawner/child_spec.h"
#include "launcher/supervise/job_report.h"

namespace ddl::launcher::message {

// ---- head to agent ----

/// Start these ranks. Sent once.
struct Launch {
  NodeLaunch node;
  bool operator==(const Launch&) const = default;
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
  double grace_seconds = 0;
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
  bool operator==(const AgentFailed&) const = default;
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

// ---- agent to spawner ----

/// Start a process. Three descriptors travel with it: its standard input, output and error.
struct Spawn {
  ChildSpec child;
  bool operator==(const Spawn&) const = default;
};
/// Send a signal: to the process group of every running child, or to every descendant.
struct SignalChildren {
  int signal = 0;
  bool all_descendants = false;
  bool operator==(const SignalChildren&) const = default;
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
  bool operator==(const ChildStarted&) const = default;
};
/// What failed between fork and exec.
struct ChildFailed {
  enum class Stage { kFork, kRedirect, kWorkdir, kExec };
  int rank = 0;
  Stage stage = Stage::kExec;
  int error = 0;  ///< errno
  bool operator==(const ChildFailed&) const = default;
};
struct ChildEnded {
  int rank = 0;
  int wait_status = 0;  ///< as from waitpid(2)
  double run_seconds = 0;
  bool operator==(const ChildEnded&) const = default;
};
struct Leftovers {
  int count = 0;
  bool operator==(const Leftovers&) const = default;
};
struct AllGone {
  bool operator==(const AllGone&) const = default;
};

using Any = std::variant<Launch, Signal, End, StdinData, StdinEof, OutputCredit, Finish, Facts, RankStarted,
                         RankEnded, AbortRequested, AgentFailed, StdinCredit, StdinClosed, Finished,
                         OutputChunk, Spawn, SignalChildren, KillAll, ReportGone, ChildStarted, ChildFailed,
                         ChildEnded, Leftovers, AllGone>;

}  // namespace ddl::launcher::message
