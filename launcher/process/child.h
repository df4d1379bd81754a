// One child process: its complete description before it is started, the descriptors and the limit of open files that
// it gets, and a sentence about how it ended.
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <string>
#include <vector>

#include "base/cpu_set.h"
#include "base/error.h"

namespace ddl::launcher {

// A process, described completely before it is started.

/// What the spawner starts. Its standard input, output and error are sent with it as descriptors.
/// It becomes the leader of a process group of its own, is killed if the spawner dies, has no descriptor but 0, 1, 2
/// and the inherited ones, and every signal at its default.
struct ChildSpec {
  int rank = 0;
  std::vector<std::string> argv;         ///< argv[0] is searched in the PATH of environment, from workdir
  std::vector<std::string> environment;  ///< "NAME=VALUE", complete
  std::string workdir;                   ///< absolute
  std::vector<int>
      inherited_fds{};  ///< numbers, above 2, of more descriptors that are sent with it, in this order
  CpuSet cpus{};        ///< that it may run on; empty: as the spawner
  std::vector<int> memory_nodes{};  ///< NUMA nodes that it prefers memory of; empty: as the spawner
  bool reports_binding = false;     ///< ChildStarted carries what the kernel reports of it
  bool strict_binding = false;      ///< it is not started if it cannot be bound so
  bool operator==(const ChildSpec&) const = default;
};

// Closing the descriptors that a forked process inherited and must not keep.

/// Closes every descriptor above 2 except keep and also_keep (-1: none). Only right after fork.
void close_all_fds_but(int keep, int also_keep = -1);

// How many descriptors a process may have open.

/// The limit under which this process was started: what its children are to get back.
rlimit open_files_limit();

/// Lifts the soft limit to the hard one: an agent holds three descriptors a rank, whatever the user's shell allows.
void raise_open_files_limit();

/// Error: the limit of open files is too low to start anything; the message names the limit.
Status check_open_files_limit();

// How a child process of this one ended, in words.

/// Waits up to a second for a child that is ending, reaps it, and says "was killed by SIGKILL" or
/// "exited with 1"; "stopped answering" if it has not ended.
std::string describe_child_end(pid_t pid);

}  // namespace ddl::launcher
