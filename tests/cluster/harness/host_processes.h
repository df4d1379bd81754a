// All processes of all hosts, and what a job leaves behind on them. The head sees every host's processes.
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
  std::uint64_t start_time = 0;  ///< with the pid it names a process for good
  std::string host;
  std::string name;     ///< comm, at most 15 characters
  std::string command;  ///< its arguments, with blanks between them
  char state = '?';

  /// One of sshd's own, as it has one or two for each connection.
  bool is_sshd() const { return name == "sshd"; }
  bool operator<(const HostProcess& other) const {
    return pid != other.pid ? pid < other.pid : start_time < other.start_time;
  }
};

/// Everything that lives now, but for zombies.
std::vector<HostProcess> processes_of_all_hosts();
/// "node2: 117 sleep 100; head: 12 ddlrun": for messages.
std::string describe(const std::vector<HostProcess>& processes);

/// What was there when it was made: processes, and files in /tmp and /dev/shm.
class Before {
 public:
  Before();

  /// Living processes that are new since then. The hosts' sshd counts too, unless without_sshd_on() says otherwise.
  std::vector<HostProcess> new_processes() const;
  /// Those for which it holds.
  std::vector<HostProcess> new_processes(const std::function<bool(const HostProcess&)>& holds) const;
  /// On a host that is cut off, sshd cannot know that its peer has gone.
  void without_sshd_on(const std::string& host) { without_sshd_.insert(host); }
  void with_all_sshd() { without_sshd_.clear(); }

  /// Waits until all new processes have ended, and requires that they do and that no new file is left.
  void require_nothing_left() const;
  /// As long as new processes are there, at most until the deadline. What is left then.
  std::vector<HostProcess> wait_until_nothing_left(Deadline deadline) const;
  /// The same, of those for which it holds.
  std::vector<HostProcess> wait_until_none_left(const std::function<bool(const HostProcess&)>& holds,
                                                Deadline deadline) const;

 private:
  std::set<HostProcess> processes_;
  std::set<std::string> files_;
  std::set<std::string> without_sshd_;
};

}  // namespace ddl::cluster
