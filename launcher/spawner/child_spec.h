// A process, described completely before it is started.
#pragma once

#include <string>
#include <vector>

#include "affinity/cpu_set.h"

namespace ddl::launcher {

/// What the spawner starts. Its standard input, output and error travel beside it as descriptors.
/// It becomes the leader of a process group of its own, is killed if the spawner dies, has no descriptor but 0, 1, 2 and the
/// inherited ones, and every signal at its default.
struct ChildSpec {
  int rank = 0;
  std::vector<std::string> argv;         ///< argv[0] is searched in the PATH of environment, from workdir
  std::vector<std::string> environment;  ///< "NAME=VALUE", complete
  std::string workdir;                   ///< absolute
  std::vector<int>
      inherited_fds{};      ///< numbers, above 2, of more descriptors that travel beside it, in this order
  affinity::CpuSet cpus{};  ///< that it may run on; empty: as the spawner
  std::vector<int> memory_nodes{};  ///< NUMA nodes that it prefers memory of; empty: as the spawner
  bool reports_binding = false;     ///< ChildStarted says what the kernel says of it
  bool strict_binding = false;      ///< it is not started if it cannot be bound so
  bool operator==(const ChildSpec&) const = default;
};

}  // namespace ddl::launcher
