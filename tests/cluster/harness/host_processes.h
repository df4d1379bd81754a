// All processes of all hosts, and those that a job leaves behind. On the head the processes of every host are
// visible.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "base/deadline.h"

namespace ddl::cluster {

/// One living process of a host or of the head.
struct HostProcess {
  pid_t pid = 0;                 ///< on the head
  std::uint64_t start_time = 0;  ///< identifies the process together with its pid, which may be reused
  std::string host;
  std::string name;     ///< comm, at most 15 characters
  std::string command;  ///< its arguments, separated by blanks
  char state = '?';

  /// A process of sshd, which has one or two for each connection.
  bool is_sshd() const { return name == "sshd"; }
  bool operator<(const HostProcess& other) const {
    return pid != other.pid ? pid < other.pid : start_time < other.start_time;
  }
};

/// All living processes, without zombies.
std::vector<HostProcess> processes_of_all_hosts();
/// "node2: 117 sleep 100; head: 12 ddlrun": for messages.
std::string describe(const std::vector<HostProcess>& processes);

/// A record of the processes, and of the files in /tmp and /dev/shm, at its construction.
class Before {
 public:
  Before();

  /// Living processes that are new since then. Those of the hosts' sshd count, too, except after without_sshd_on().
  std::vector<HostProcess> new_processes() const;
  /// Those for which the predicate holds.
  std::vector<HostProcess> new_processes(const std::function<bool(const HostProcess&)>& holds) const;
  /// Ignores sshd on this host: in a partition it cannot detect that its peer has gone.
  void without_sshd_on(const std::string& host) { without_sshd_.insert(host); }
  void with_all_sshd() { without_sshd_.clear(); }

  /// Waits until all new processes have ended, and requires that they do and that no new file is left.
  void require_nothing_left() const;
  /// Waits while there are new processes, at most until the deadline. Returns those that are left.
  std::vector<HostProcess> wait_until_nothing_left(Deadline deadline) const;
  /// The same for processes for which the predicate holds.
  std::vector<HostProcess> wait_until_none_left(const std::function<bool(const HostProcess&)>& holds,
                                                Deadline deadline) const;

 private:
  std::set<HostProcess> processes_;
  std::set<std::string> files_;
  std::set<std::string> without_sshd_;
};

}  // namespace ddl::cluster
