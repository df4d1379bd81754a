// Running processes: by pidfd, which never means another process as a reused pid may, and as /proc/PID/stat shows
// them.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/deadline.h"
#include "base/error.h"
#include "base/fd.h"

namespace ddl {

// By pidfd.

/// pidfd_open(2); needs Linux 5.3. The descriptor is readable once the process has ended.
Result<UniqueFd> open_pidfd(pid_t pid);
/// pidfd_send_signal(2). Success also when the process has already ended.
Status send_signal(int pidfd, int signal);
/// True once the process has ended (also while it is an unreaped zombie).
bool has_ended(int pidfd);

// Children of this process.

/// True once the child has ended, reaped or not.
bool has_child_ended(pid_t child);
/// Waits until it has ended, and does not reap it. False: the deadline passed first. Without a pidfd, which the
/// kernel, a seccomp filter or the limit of open files may refuse, it polls.
bool wait_for_end(pid_t child, Deadline deadline);
/// The period of such polling: some milliseconds, and not beyond the deadline.
int poll_period_milliseconds(Deadline deadline);

// As /proc shows them.

/// proc(5), /proc/PID/stat.
struct ProcessStat {
  pid_t pid = 0;
  std::string name;     ///< comm, at most 15 characters
  char state = '?';     ///< of its first thread: R, S, D, T (stopped by a signal), Z, ...
  int num_threads = 0;  ///< a zombie with more than one runs on in the others
  pid_t parent = 0;
  std::uint64_t start_time =
      0;                   ///< clock ticks after boot; distinguishes it from a later process of the same pid
  double cpu_seconds = 0;  ///< in the resolution of the clock tick
  double reaped_cpu_seconds = 0;  ///< of the children that it has waited for, and theirs
  std::int64_t resident_bytes = 0;

  bool is_stopped() const { return state == 'T'; }
  /// False for a zombie all of whose threads have ended.
  bool is_alive() const { return (state != 'Z' && state != 'X') || num_threads > 1; }
};

/// nullopt for a text of another form. Pure.
std::optional<ProcessStat> parse_process_stat(std::string_view text);
/// nullopt if there is no such process.
std::optional<ProcessStat> read_process_stat(pid_t pid);
std::string process_stat_path(pid_t pid);

/// The numbers that a folder of /proc lists: "/proc", all processes of this PID namespace that this user may see;
/// "/proc/PID/task", the threads of one. Empty if it cannot be read.
std::vector<pid_t> listed_pids(const std::string& folder = "/proc");

}  // namespace ddl
