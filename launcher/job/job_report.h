// How a job went: what cli/ prints at the end, as text or JSON.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/cpu_set.h"
#include "base/deadline.h"
#include "launcher/process/process_state.h"

namespace ddl::launcher {

/// How one rank ended.
struct RankOutcome {
  enum class Kind {
    kNotStarted,   ///< the job ended before it was started
    kStartFailed,  ///< exec or what precedes it failed; start_error says why
    kRunning,      ///< unknown: its host was lost while it ran
    kExited,       ///< exit_code
    kSignalled,    ///< signal
  };
  Kind kind = Kind::kNotStarted;
  int rank = 0;
  std::string host;
  std::int64_t pid = 0;
  int exit_code = 0;
  int signal = 0;
  bool core_dumped = false;
  bool ended_by_us = false;  ///< the signal was ours: a consequence, never the first failure
  bool before_end = false;   ///< it ended before its agent was told to end any rank: no consequence of that
  int gone_rank = -1;        ///< of a failure: whom it had seen go before, by what libddl says; -1: nobody
  Seconds run_seconds;
  std::string start_error;       ///< "cannot execute ./train: No such file or directory"
  std::string kill_explanation;  ///< for a SIGKILL that we did not send: what the cgroup's OOM events say
  std::vector<std::string> stderr_tail;  ///< its last lines on standard error, at most 20
  bool operator==(const RankOutcome&) const = default;
};

/// What --report-bindings found out of a rank.
struct BoundRank {
  CpuSet planned;          ///< empty: it was not to be bound
  KernelBinding kernel;    ///< without CPUs if it ended before it could be looked at
  std::string difference;  ///< how it is not as planned, as a sentence; "" if it is
};

enum class EndReason {
  kSuccess,      ///< every rank exited with 0
  kRankFailed,   ///< first_failure is the culprit
  kAborted,      ///< a rank called PMIx_Abort or MPI_Abort: first_failure and abort_message
  kStartFailed,  ///< a rank could not be started (first_failure), or an agent (message)
  kHostLost,     ///< an agent or spawner died: message
  kTimeout,      ///< --timeout
  kRankStopped,  ///< first_failure was stopped (SIGSTOP) and not continued; signal is what stopped it
  kSignal,       ///< ddlrun itself was told to end, or a resource manager ends its agents (message): signal
  kOutputLost,   ///< every rank exited with 0, but not all that they wrote is where it should be: message
};

struct JobReport {
  EndReason reason = EndReason::kSuccess;
  int exit_code = 0;                       ///< what ddlrun returns; see contract/ddlrun.h
  std::optional<int> first_failure;        ///< rank
  std::string message;                     ///< one sentence about reason, where ranks alone do not tell it
  std::vector<std::string> host_failures;  ///< several hosts did not come up: "node3: why", one each
  std::string abort_message;               ///< what the aborting rank said
  int signal = 0;                          ///< of kSignal
  double run_seconds = 0;                  ///< from the first start to the last end
  bool saw_output = true;                  ///< what ranks wrote went through ddlrun
  int leftovers_ended = 0;                 ///< processes that outlived their rank and were ended
  std::vector<RankOutcome> ranks;          ///< by rank
  std::map<int, BoundRank> bindings;       ///< by rank, of those that were looked at; empty unless asked for
};

}  // namespace ddl::launcher
