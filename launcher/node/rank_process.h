// A rank as a child process: its description for the spawner, what the kernel knows of it, and the report of its end or
// of the failure to start it.
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/fd.h"
#include "launcher/job/job_report.h"
#include "launcher/job/rank_activity.h"
#include "launcher/node/rank_records.h"
#include "launcher/plan/launch_plan.h"
#include "launcher/protocol/messages.h"
#include "launcher/protocol/spawner_messages.h"

namespace ddl::launcher {

/// The description of one rank for the spawner. Its environment is the job's, then the rank's, then the agent's; a
/// later value replaces an earlier one. JobLaunch::login_variables get this node's own values.
ChildSpec rank_child(const JobLaunch& job, const NodeLaunch& node, const RankLaunch& launch,
                     const Environment& agent_environment, std::vector<int> inherited_fds = {});

/// Both ends of a rank's three standard streams.
struct RankStreams {
  UniqueFd rank_in, rank_out, rank_err;
  UniqueFd in;  ///< empty unless the rank reads ddlrun's input
  UniqueFd out, err;
};
/// Creates pipes; without reads_stdin the input is /dev/null. Error: no descriptors are left.
Result<RankStreams> make_rank_streams(bool reads_stdin);

/// From /proc; all unknown if there is no such process.
ProcessActivity process_activity(pid_t pid);

/// Which process a running rank is, and what /proc says of it. now: what the rank shows itself, whose process may be
/// another one than pid, which the spawner has started.
void add_process(RankActivity& activity, const RankSnapshot& now, std::int64_t pid);

/// The library of an MPI that a rank's process has loaded, from /proc; nullopt: none, or it does not show what it has.
std::optional<message::MpiLoaded> loaded_mpi(int rank, pid_t pid);

/// What the agent had done to end the ranks when it received the report of a rank's end.
struct TerminationState {
  std::vector<int> requested_signals{};  ///< SIGINT may be followed by SIGTERM
  bool killed = false;

  bool has_requested(int signal) const {
    return std::find(requested_signals.begin(), requested_signals.end(), signal) != requested_signals.end();
  }
};

/// The outcome of a rank that ran, without host, kill_explanation and stderr_tail. A death by a signal that the
/// agent has sent is not a failure (ended_by_us). Pure.
RankOutcome rank_end(const message::ChildEnded& ended, std::int64_t pid, const TerminationState& ending);

/// The command that could not be executed. search_path: the PATH of the rank's environment.
struct FailedCommand {
  std::string command;
  std::string workdir;
  std::string search_path;
};

/// The outcome of a rank that could not be started: start_error and exit_code (as a shell: 127 not found, 126 not
/// executable; 122 if the command is not the reason). Reads the file to find reasons that errno does not distinguish:
/// a directory, an interpreter that does not exist.
RankOutcome start_failure(const message::ChildFailed& failure, const FailedCommand& command);

/// The interpreter of a script started, and exited because it took the carriage return at the end of the script's
/// first line for a part of a name or an option: fills start_error. Nothing if the outcome is another one. Reads the
/// file.
void describe_carriage_return(const FailedCommand& command, RankOutcome& outcome);

}  // namespace ddl::launcher
