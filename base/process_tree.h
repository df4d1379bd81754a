// The descendants of a process: lists them, signals one, waits for all of them, or kills all.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <vector>

#include "base/deadline.h"
#include "base/error.h"

namespace ddl {

/// A process as /proc showed it; start_time distinguishes it from a later one with the same pid.
struct ProcessId {
  pid_t pid = 0;
  std::uint64_t start_time = 0;  ///< clock ticks after boot
  bool operator==(const ProcessId&) const = default;
};

/// Makes this process the one that inherits orphans below it, so that descendants stay descendants, also those that
/// called setsid (PR_SET_CHILD_SUBREAPER).
Status become_subreaper();

/// Whether /proc shows this process and its descendants; all of the following read it. Error kUnavailable: it is not
/// mounted, or it is that of another PID namespace, whose numbers are other processes here.
Status check_proc();

/// The number of this process's PID namespace; 0 if it is unknown.
std::uint64_t own_pid_namespace();

/// All living descendants of root, itself not among them (nor zombies). A snapshot: more may be started meanwhile. A
/// process whose parent has died belongs to the nearest subreaper above it.
std::vector<ProcessId> descendants_of(pid_t root);

/// Whether the calling process has children, also zombies. A subreaper without children has no descendants, since a
/// process that lost its parent became its child.
bool has_children();

/// Sends a signal to one process found before, if it is still that process.
void signal_process(const ProcessId& process, int signal);

/// Sends a signal to every descendant of this process that it finds, and returns them. More may be started meanwhile.
std::vector<ProcessId> signal_descendants(int signal);

/// Returns when one of the processes has ended, or at the deadline; sooner where that cannot be watched.
void wait_until_one_ends(const std::vector<ProcessId>& processes, Deadline deadline);

/// Reaps children as they end until the calling process has no descendants. False if the deadline passed first. Only
/// for a subreaper, whose orphans are its children. Leaves preexisting children and what is below them alone.
bool wait_for_descendants(Deadline deadline, const std::vector<ProcessId>& preexisting = {});

/// The same, and kills (SIGKILL) every descendant that it finds. Returns how many were killed.
int kill_descendants(Deadline deadline, const std::vector<ProcessId>& preexisting = {});

/// Makes this process a subreaper, so that processes which others leave behind become its children, and at its end
/// kills all descendants. Those that there were before stay: children of a shell that became this process by exec.
class OrphanReaper {
 public:
  OrphanReaper();
  ~OrphanReaper();
  OrphanReaper(const OrphanReaper&) = delete;
  OrphanReaper& operator=(const OrphanReaper&) = delete;

  /// Gives orphans that clean up after themselves time to end. False if the deadline passed first.
  bool wait(Deadline deadline) const { return wait_for_descendants(deadline, preexisting_); }

 private:
  const std::vector<ProcessId> preexisting_;
};

}  // namespace ddl
