// The sockets at which the head and the agents of running jobs answer questions from the shells of their hosts: their
// names, and how to find them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace ddl::launcher {

/// The name of such a socket, which is abstract (unix(7)).
struct JobSocket {
  enum class Role { kHead, kAgent };
  Role role = Role::kHead;
  std::int64_t uid = 0;  ///< as the name says: to be compared with that of the process that listens
  std::int64_t pid = 0;  ///< of the process that listens, in its own PID namespace
  std::string job_id;

  std::string name() const;
  bool operator==(const JobSocket&) const = default;
};

/// The pid of the ddlrun that was started for a job, from the job's id; nullopt for a text of another form. Pure.
std::optional<std::int64_t> head_pid_of(std::string_view job_id);

/// The sockets with such names in the text of /proc/net/unix: one for each job, its head's if that is among them. Any
/// user can take such a name. Pure.
std::vector<JobSocket> job_sockets(std::string_view proc_net_unix);

/// Those of this host, or rather of this network namespace. Error: /proc cannot be read.
Result<std::vector<JobSocket>> job_sockets_here();

}  // namespace ddl::launcher
