// Ranks of several ddlruns in one Slurm job, on one node: each plans with all CPUs and GPUs of the job there.
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

/// While it lives, agents of the same user and Slurm job on this node find that a ddlrun has ranks here. It is a listening socket
/// with an abstract name (unix(7)): the kernel takes it away however this process ends, and no file stays. One thread.
class JobPresence {
 public:
  /// Error: no such socket can be had; or the job or the head's host is no word for its name.
  static Result<JobPresence> announce(EventLoop& loop, const std::string& slurm_job, const JobHead& head);

  /// Of the others that have announced themselves, those whose agents may run on a CPU that this process may run on as well: parts of
  /// a node that Slurm keeps apart (srun --exact) are no matter. Sockets of other users do not count.
  std::vector<JobHead> others() const;

 private:
  JobPresence(UniqueFd socket, std::string prefix, std::string name)
      : socket_(std::move(socket)), prefix_(std::move(prefix)), name_(std::move(name)) {}

  UniqueFd socket_;
  EventLoop::FdWatch watch_;  ///< ends before the socket is closed
  std::string prefix_;        ///< of the names of all agents of this job and user
  std::string name_;
};

/// The heads in the text of /proc/net/unix whose sockets' names are prefix, host, '/', and number, each with its socket's name; without
/// the socket that is called own. Pure.
struct AnnouncedHead {
  JobHead head;
  std::string socket;
  bool operator==(const AnnouncedHead&) const = default;
};
std::vector<AnnouncedHead> announced_heads(std::string_view proc_net_unix, std::string_view prefix,
                                           std::string_view own);

}  // namespace ddl::launcher
