// Finds other ddlruns that have ranks of the same scheduler's job on this node: each of them plans with all CPUs and GPUs
// of the job there.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/fd.h"
#include "launcher/loop/event_loop.h"
#include "launcher/scheduler/scheduler.h"

namespace ddl::launcher {

/// The ddlrun that an agent, or a rank of mpirun, belongs to.
struct JobHead {
  std::string host;
  std::int64_t pid = 0;
  bool operator==(const JobHead&) const = default;
};

/// While it exists, agents and ranks of mpirun of the same user and scheduler's job on this node can find that a ddlrun has
/// ranks here. It is a listening socket with an abstract name (unix(7)): the kernel removes it however this process
/// ends, and no file is left. One thread.
class JobPresence {
 public:
  /// Error: the socket could not be created, or the job or the head's host cannot be a part of its name.
  static Result<JobPresence> announce(const std::string& scheduler_job, const JobHead& head);

  /// Accepts the connections of those that look for others. Without it only the first kListenBacklog of them find
  /// this process.
  void accept_in(EventLoop& loop);
  static constexpr int kListenBacklog = 256;

  /// The other heads that have announced themselves by a process that shares a CPU with this one. Disjoint parts of a
  /// node (srun --exact) do not conflict. Sockets of other users do not count.
  std::vector<JobHead> others() const;

 private:
  JobPresence(UniqueFd socket, std::string prefix, std::string name)
      : socket_(std::move(socket)), prefix_(std::move(prefix)), name_(std::move(name)) {}

  UniqueFd socket_;
  EventLoop::FdWatch watch_;  ///< ends before the socket is closed
  std::string prefix_;        ///< of the names of all agents of this job and user
  std::string name_;
};

/// A warning for the user: another head uses the same CPUs of the scheduler's job on a host. Pure.
std::string shared_cpus_warning(const JobHead& other, const std::string& host, const Scheduler& scheduler,
                                const std::string& scheduler_job);

// What the head passes to the ranks of mpirun in the variable contract::env::kMpiHead, so that they announce it.

struct JobAnnouncement {
  std::string scheduler_job;  ///< "": none; nothing is announced
  JobHead head;
  bool operator==(const JobAnnouncement&) const = default;
};
/// "" if it has no scheduler's job. Pure.
std::string announcement_text(const JobAnnouncement& announcement);
/// Without a scheduler's job if the text is not one of announcement_text(). Pure.
JobAnnouncement parse_announcement(std::string_view text);

/// A head, and the name of the socket that announces it.
struct AnnouncedHead {
  JobHead head;
  std::string socket;
  bool operator==(const AnnouncedHead&) const = default;
};
/// The heads in the text of /proc/net/unix, from sockets whose names are prefix, host, '/' and pid; without the
/// socket named own. Pure.
std::vector<AnnouncedHead> announced_heads(std::string_view proc_net_unix, std::string_view prefix,
                                           std::string_view own);

}  // namespace ddl::launcher
