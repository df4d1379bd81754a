// The tree of processes below this one: who is in it, how to signal it, and how all of it is ended (SIGTERM, a grace,
// SIGKILL) and reaped.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "base/deadline.h"
#include "base/error.h"
#include "launcher/loop/event_loop.h"

namespace ddl::launcher {

// Everything that a process started, directly or not, also what called setsid.

/// A process as /proc showed it; start_time tells it from a later one with the same pid.
struct ProcessId {
  pid_t pid = 0;
  std::uint64_t start_time = 0;  ///< clock ticks after boot
};

/// Makes this process the one that inherits orphans below it, so that descendants stay descendants (PR_SET_CHILD_SUBREAPER).
void become_subreaper();

/// Whether /proc shows this process and its like; all of the following look there. Error kUnavailable: it is not mounted, or it is
/// that of another PID namespace, whose numbers are other processes here.
Status check_proc();

/// All living descendants of root (zombies are not among them). A snapshot: more may be started meanwhile.
std::vector<ProcessId> descendants_of(pid_t root);

/// Sends a signal to one process found before, if it is still that process.
void signal_process(const ProcessId& process, int signal);

/// Both only for a subreaper, whose orphans are its children. Both leave bystanders and what is below them alone.
/// Reaps children as they end until the calling process has no descendants. False if the deadline passed first.
bool wait_for_descendants(Deadline deadline, const std::vector<ProcessId>& bystanders = {});

/// Kills (SIGKILL) and reaps every descendant of the calling process until none is left or the deadline passes.
/// Returns how many processes were killed.
int kill_descendants(Deadline deadline, const std::vector<ProcessId>& bystanders = {});

// TERM, grace, KILL: how processes are asked to end and then made to.

/// Drives one ending. Calls back on the loop's thread; does nothing more once told that all are gone.
class Terminator {
 public:
  struct Actions {
    std::function<void(int signal)> ask;  ///< send this signal to every process of the job
    std::function<void()> kill;           ///< SIGKILL to every process of the job
  };
  Terminator(EventLoop& loop, Actions actions) : loop_(loop), actions_(std::move(actions)) {}

  /// Asks with signal and kills after the grace. Called again it can only hasten: an earlier kill wins, and the
  /// signal is not sent twice. grace 0 or SIGKILL: kills now.
  void begin(int signal, double grace_seconds);
  void all_gone() {
    timer_.cancel();
    done_ = true;
  }
  bool has_begun() const { return kill_at_.has_value(); }

 private:
  void kill_now();

  EventLoop& loop_;
  Actions actions_;
  EventLoop::Timer timer_;
  std::optional<std::chrono::steady_clock::time_point> kill_at_;
  bool killed_ = false;
  bool done_ = false;
};

}  // namespace ddl::launcher
