// Finds other ddlruns that have ranks of the same Slurm job on this node: each of them plans with all CPUs and GPUs
// of the job there.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/error.h"
#include "base/fd.h"
#include "launcher/loop/event_loop.h"

namespace ddl::launcher {

/// The ddlrun that an agent belongs to.
struct JobHead {
  std::string host;
  std::int64_t pid = 0;
  bool operator==(const JobHead&) const = default;
};

/// While it exists, agents of the same user and Slurm job on this node can find that a ddlrun has ranks here. It is
/// a listening socket with an abstract name (unix(7)): the kernel removes it however this process ends, and no file
/// is left. One thread.
class JobPresence {
 public:
  /// Error: the socket could not be created, or the job or the head's host cannot be a part of its name.
  static Result<JobPresence> announce(EventLoop& loop, const std::string& slurm_job, const JobHead& head);

  /// The other heads that have announced themselves and whose agents share a CPU with this process. Disjoint parts
  /// of a node (srun --exact) do not conflict. Sockets of other users do not count.
  std::vector<JobHead> others() const;

 private:
  JobPresence(UniqueFd socket, std::string prefix, std::string name)
      : socket_(std::move(socket)), prefix_(std::move(prefix)), name_(std::move(name)) {}

  UniqueFd socket_;
  EventLoop::FdWatch watch_;  ///< ends before the socket is closed
  std::string prefix_;        ///< of the names of all agents of this job and user
  std::string name_;
};

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
