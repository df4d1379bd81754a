// One running program, and what it has cost when it has ended.
#pragma once

#include <sys/types.h>

#include <string>

#include "base/command.h"
#include "base/deadline.h"
#include "base/error.h"
#include "base/fd.h"
#include "bench/contender.h"

namespace ddl::bench {

/// What a finished run cost.
struct RunCost {
  double wall_seconds = 0;  ///< from before the spawn until the started process has been reaped
  double cpu_seconds = 0;   ///< user and system time of the process and all of its descendants
};

/// Owns a started program and everything that it leaves behind. The harness's process must be a child subreaper
/// (become_subreaper()) and start one MeasuredRun at a time: CPU time and orphans are those of all its children.
class MeasuredRun {
 public:
  /// Starts the command with stdin from /dev/null, and stdout and stderr into one pipe that MeasuredRun reads.
  static Result<MeasuredRun> start(Command command);
  /// Kills the program and all of its descendants if they still run, and waits for them.
  ~MeasuredRun();
  MeasuredRun(MeasuredRun&& other) noexcept = default;
  MeasuredRun& operator=(MeasuredRun&&) = delete;

  pid_t pid() const { return child_.pid(); }
  const std::string& output() const { return output_; }

  /// Reads output until word has appeared count times. An error if the program ends or the deadline passes first.
  Status wait_for_output(const std::string& word, int count, Deadline deadline);

  /// Returns at the deadline; an error if the program ends first.
  Status stay_running(Deadline deadline);

  /// Waits until the program and all of its descendants have ended. An error, with the end of its output, if it
  /// does not end in time, exits with anything but 0, or leaves a process behind for more than two seconds.
  Result<RunCost> finish(Deadline deadline);

 private:
  enum class Event { kOutput, kEnded, kTimeout };

  MeasuredRun(Child child, UniqueFd pidfd, UniqueFd output, double started, double cpu_before);
  Result<Event> next_event(Deadline deadline);
  Status read_output();
  Error failure(const std::string& what) const;

  Child child_;
  UniqueFd pidfd_;  // none: moved from, or finished
  UniqueFd output_fd_;
  std::string output_;
  double started_ = 0;
  double cpu_before_ = 0;
};

}  // namespace ddl::bench
