// The result of a job: cli/ prints it at the end, as text or JSON.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/cpu_set.h"
#include "base/deadline.h"
#include "contract/ddlrun.h"
#include "launcher/job/elastic_spec.h"
#include "launcher/job/rank_calls.h"
#include "launcher/job/rank_history.h"
#include "launcher/process/node_usage.h"
#include "launcher/process/process_state.h"

namespace ddl::launcher {

/// How one rank ended.
struct RankOutcome {
  enum class Kind {
    kNotStarted,   ///< the job ended before it was started
    kStartFailed,  ///< exec or a step before it failed; start_error states why
    kRunning,      ///< unknown: its host was lost while it ran
    kExited,       ///< exit_code
    kSignalled,    ///< signal
  };
  Kind kind = Kind::kNotStarted;
  int rank = 0;
  int incarnation = 0;  ///< how many times the rank had been started before
  std::string host;
  std::int64_t pid = 0;
  int exit_code = 0;
  int signal = 0;
  bool core_dumped = false;
  bool ended_by_us = false;  ///< ddlrun sent the signal: a consequence, never the first failure
  bool before_end = false;   ///< it ended before its agent sent any signal to end ranks
  int gone_rank = -1;        ///< of a failure: the rank whose end it had observed before, by libddl; -1: none
  Seconds run_seconds;
  ProcessUsage usage;             ///< of a rank that has ended
  std::int64_t clock_hertz = -1;  ///< of its fastest core, the mean while it ran; below 0: not measured
  RankCalls calls;                ///< of the same; without sums: it has made none by libddl
  /// "cannot execute ./train: No such file or directory". Of a script that exited: what is wrong with its first line.
  std::string start_error;
  std::string kill_explanation;  ///< for a SIGKILL that ddlrun did not send: from the cgroup's OOM events
  std::vector<std::string> stderr_tail;  ///< its last lines on standard error, at most 20
  bool operator==(const RankOutcome&) const = default;
};

/// "rank 3 on node2 (pid 4711)".
std::string rank_label(const RankOutcome& outcome);
/// "0, 2-5, 7"; after the first dozen ranges "and 40 more". ranks are ascending.
std::string rank_ranges(const std::vector<int>& ranks);
/// "rank 3", "ranks 0, 2-5".
std::string ranks_text(const std::vector<int>& ranks);
/// "0.034 s", "12.3 s", "2 min 5 s", "3 h 20 min".
std::string duration_text(double seconds);
/// "was killed by SIGKILL", "exited with 7", "could not be started: no such file".
std::string rank_ending(const RankOutcome& outcome);

/// Of a rank that has ended, or was lost: it has not exited with 0.
inline bool is_failure(const RankOutcome& outcome) {
  return outcome.kind != RankOutcome::Kind::kExited || outcome.exit_code != 0;
}

/// Of a rank that has ended: as a shell has it.
inline int exit_code_of(const RankOutcome& outcome) {
  return outcome.kind == RankOutcome::Kind::kSignalled ? contract::kSignalBase + outcome.signal
                                                       : outcome.exit_code;
}

/// A GPU that a rank sees, as the vendor's runtime says it.
struct SeenGpu {
  std::string bus_id;  ///< "0000:c1:00.0"
  std::string uuid;    ///< "GPU-..."; "" if it has none
  bool operator==(const SeenGpu&) const = default;
};

/// What the plan gives a rank on its node.
struct PlannedRank {
  std::string cpus;       ///< as a list; "": it is not bound
  std::vector<int> gpus;  ///< that it sees, by the numbers of its node
};

/// The result of --report-bindings for one rank.
struct BoundRank {
  CpuSet planned;        ///< empty: no binding was planned
  KernelBinding kernel;  ///< without CPUs if the rank ended before its binding could be read
  std::optional<std::vector<SeenGpu>>
      gpus;                ///< in the runtime's order; nullopt: none were planned, or unknown
  std::string difference;  ///< how the binding differs from the plan, as sentences; "" if it does not
};

enum class EndReason {
  kSuccess,      ///< every rank exited with 0
  kRankFailed,   ///< first_failure is the culprit
  kAborted,      ///< a rank called PMIx_Abort or MPI_Abort: first_failure and abort_message
  kStartFailed,  ///< a rank could not be started (first_failure), or an agent (message)
  kHostLost,     ///< an agent or spawner died: message
  kTimeout,      ///< --timeout
  kStalled,      ///< ranks waited longer for others than --stall-check-shutdown-time-seconds: message
  kPortTaken,    ///< somebody else listens on a port that is held for a server of ranks: message
  kRankStopped,  ///< first_failure was stopped (SIGSTOP) and not continued; signal is what stopped it
  kSignal,       ///< ddlrun received a signal to end, or a resource manager ends its agents (message): signal
  kOutputLost,   ///< every rank exited with 0, but a part of their output could not be written: message
  kHostsChanged,  ///< of a generation: the next one has other hosts: message
  kDrained,       ///< an elastic job was asked to end, and its ranks have saved its state: message
};

/// As reports and metrics name them.
inline constexpr std::array<std::pair<EndReason, const char*>, 13> kEndReasonNames{
    {{EndReason::kSuccess, "success"},
     {EndReason::kRankFailed, "rank_failed"},
     {EndReason::kAborted, "aborted"},
     {EndReason::kStartFailed, "start_failed"},
     {EndReason::kHostLost, "host_lost"},
     {EndReason::kTimeout, "timeout"},
     {EndReason::kStalled, "stalled"},
     {EndReason::kPortTaken, "port_taken"},
     {EndReason::kRankStopped, "rank_stopped"},
     {EndReason::kSignal, "signal"},
     {EndReason::kOutputLost, "output_lost"},
     {EndReason::kHostsChanged, "hosts_changed"},
     {EndReason::kDrained, "drained"}}};
constexpr const char* name_of(EndReason reason) {
  for (const auto& [value, name] : kEndReasonNames)
    if (value == reason) return name;
  return "unknown";
}
/// Whether the job, or one of its generations, was to go on.
constexpr bool is_failure(EndReason reason) {
  return reason != EndReason::kSuccess && reason != EndReason::kHostsChanged && reason != EndReason::kDrained;
}

/// Why a job ends. Only the Supervisor decides that.
struct JobEnd {
  EndReason reason = EndReason::kSuccess;
  int exit_code = 0;                 ///< what ddlrun returns; see contract/ddlrun.h
  std::optional<int> first_failure;  ///< rank
  std::string message;               ///< one sentence about reason, if ranks alone do not show it
  std::vector<std::string>
      host_failures;          ///< if agents of several hosts did not start: "node3: why" for each
  std::string abort_message;  ///< the text of the aborting rank
  int signal = 0;             ///< of kSignal and kRankStopped
};

/// For a reason that a message and an exit code tell.
inline JobEnd end_with(EndReason reason, int exit_code, std::string message = {}, int signal = 0) {
  JobEnd end;
  end.reason = reason;
  end.exit_code = exit_code;
  end.message = std::move(message);
  end.signal = signal;
  return end;
}
/// A rank has aborted the job. An exit status has 8 bits, and an abort is never a success.
inline JobEnd end_by_abort(int rank, int exit_code, std::string text) {
  JobEnd end = end_with(EndReason::kAborted, (exit_code & 0xff) == 0 ? 1 : exit_code & 0xff);
  end.first_failure = rank;
  end.abort_message = std::move(text);
  return end;
}
inline JobEnd end_by_signal(int signal, std::string message = {}) {
  return end_with(EndReason::kSignal, contract::kSignalBase + signal, std::move(message), signal);
}

/// One generation of an elastic job, after its end.
struct GenerationReport {
  GenerationNumber number;
  int num_ranks = 0;
  std::vector<std::string> hosts;
  double begin_seconds = 0;  ///< since the job began
  double run_seconds = 0;    ///< as JobReport::run_seconds
  JobEnd end;
  std::int64_t commits = 0;  ///< of the state from which it has gone on; 0: from its beginning, or not known
  std::optional<double> recovery_seconds =
      std::nullopt;  ///< from the loss of a rank to its beginning, if one was lost
};

/// What the job has used of one of its hosts, which has reported that nothing of the job is left there.
struct HostUsage {
  std::string host;
  NodeUsage usage;
};

/// A step of a job's start.
struct StartPhase {
  std::string name;  ///< "agents ready"
  Seconds seconds;   ///< from the begin of the job to its end
  bool operator==(const StartPhase&) const = default;
};

struct JobReport : JobEnd {
  std::string hint;                       ///< of the error because of which nothing was started
  std::vector<std::string> failed_hosts;  ///< whose agents did not start, or were lost: their names
  double run_seconds = 0;                 ///< from the first start to the last end
  bool saw_output = true;                 ///< the output of the ranks went through ddlrun
  int leftovers_ended = 0;                ///< processes that outlived their rank and were ended
  std::vector<RankOutcome> ranks;         ///< by rank
  std::vector<StartPhase> start;          ///< as far as it came
  std::vector<std::string> stalls;  ///< what was said of ranks that waited long for others, the first ones
  std::vector<HostUsage> hosts;     ///< those that reported it
  /// What the failed rank and a few others did when the failure became known; empty if no rank has recorded anything.
  std::vector<RankHistory> histories;
  std::string timeline;               ///< the file of the timeline; "": none was written
  std::string timeline_lost;          ///< why one that was recorded was not written; ""
  std::vector<PlannedRank> planned;   ///< by rank; empty if there was none, or in a job that goes on
  std::map<int, BoundRank> bindings;  ///< by rank, of those whose binding was read; empty unless asked for
  std::vector<GenerationReport> generations;  ///< of an elastic job, the last one too; all else is of that
};

}  // namespace ddl::launcher
