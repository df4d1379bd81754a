// A rank as a child process: what the spawner is given to start it, what it leaves behind in its exit record, and how its
// end, or the failure to start it, is reported.
#pragma once

#include <string>

#include "base/error.h"
#include "base/fd.h"
#include "launcher/job/job_report.h"
#include "launcher/plan/launch_plan.h"
#include "launcher/protocol/spawner_messages.h"

namespace ddl::launcher {

// What the spawner is given to start one rank.

/// The command and environment of one rank: the job's, then the rank's, then the agent's, each on top of the one
/// before. Variables that describe the login are this node's own where the job asks for that.
ChildSpec rank_child(const NodeLaunch& node, const RankLaunch& launch, const Environment& agent_environment,
                     std::vector<int> inherited_fds = {});

/// Both ends of a rank's three standard streams.
struct RankStreams {
  UniqueFd rank_in, rank_out, rank_err;
  UniqueFd in;  ///< empty unless the rank reads ddlrun's input
  UniqueFd out, err;
};
/// Pipes; without reads_stdin the input is /dev/null. Error: no descriptors are left.
Result<RankStreams> make_rank_streams(bool reads_stdin);

/// PATH in its environment; "" if it has none.
std::string search_path_of(const ChildSpec& child);

// What the ranks of a node leave behind when they end (contract/rank_process.h).

/// One record a local rank, all in one memfd that the ranks inherit.
class ExitRecords {
 public:
  /// Error: the kernel gives no such memory; ranks run without.
  static Result<ExitRecords> create(std::size_t local_ranks);

  /// For the ranks to inherit as contract::kExitRecordFd.
  int fd() const { return fd_.get(); }
  /// The value of contract::env::kExitRecord.
  static std::string place_of(std::size_t local_rank);
  /// Whom the rank has seen go, by what it wrote: any number. contract::ExitRecord::kNone: nobody.
  int gone_rank(std::size_t local_rank) const;

 private:
  explicit ExitRecords(UniqueFd fd) : fd_(std::move(fd)) {}

  UniqueFd fd_;
};

// How a rank that ran has ended.

/// What the agent had done to end the ranks when the news came.
struct EndingSoFar {
  int asked_signal = 0;  ///< 0: none was sent yet
  bool killed = false;
};

/// Pure. The outcome without host, kill_explanation and stderr_tail. A signal that we sent is ours, not a failure's.
RankOutcome rank_end(const message::ChildEnded& ended, std::int64_t pid, const EndingSoFar& ending);

// Why a rank could not be started, in the words and with the exit code of a shell.

/// What was to be executed. search_path: the PATH of the rank's environment.
struct FailedCommand {
  std::string command;
  std::string workdir;
  std::string search_path;
};

/// Fills start_error and exit_code (127 not found, 126 not executable, 122 what is not the command's fault). Looks at the file
/// to find out what the kernel's errno does not say: a directory, an interpreter that is not there.
void describe_start_failure(const message::ChildFailed& failure, const FailedCommand& command,
                            RankOutcome& outcome);

}  // namespace ddl::launcher
