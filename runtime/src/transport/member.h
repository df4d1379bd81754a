// The ranks of a group that can reach each other, as each of them knows the others.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace ddl::runtime {

struct Member {
  int rank = 0;
  std::string host;
  pid_t pid = 0;

  /// "rank 2 on node7".
  std::string place() const { return "rank " + std::to_string(rank) + " on " + host; }
  /// "rank 2 on node7 (pid 123)".
  std::string describe() const { return place() + " (pid " + std::to_string(pid) + ")"; }
};

/// In the order of their ranks; a member's place in it is its index everywhere in shared memory.
using Members = std::vector<Member>;

}  // namespace ddl::runtime
