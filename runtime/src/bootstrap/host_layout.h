// Which ranks run on which host, a value that all ranks know alike, and the name of this host. Compiled into libddl and
// into the PMIx module.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"

namespace ddl::runtime {

// Which ranks run on which host: a value that all ranks know alike.

struct HostLayout {
  /// The ranks of each host, ascending; the hosts in the order of their lowest ranks. Every rank is in it once.
  std::vector<std::vector<int>> hosts{{0}};
  /// This rank's host, an index of hosts.
  int own = 0;

  /// Puts groups, in whatever order they were learnt, into order. An error unless they hold every rank from 0 to
  /// size - 1 once.
  static Result<HostLayout> of(std::vector<std::vector<int>> groups, int rank, int size);

  int host_count() const { return static_cast<int>(hosts.size()); }
  const std::vector<int>& local() const { return hosts[static_cast<std::size_t>(own)]; }
  int size() const;
  int local_rank(int rank) const;  ///< of a rank of the own host
  int host_of(int rank) const;     ///< the host, as an index of hosts, that a rank is on
  int max_local_size() const;      ///< how many ranks the host with the most has
  /// How many ranks of each host speak to the other hosts: as many as the smallest host has, so that the rank with one
  /// local rank has a partner of the same local rank everywhere.
  int lane_count() const;
  /// The own host's index among the hosts that have this local rank, and how many these are.
  int cross_rank(int local_rank) const;
  int cross_size(int local_rank) const;
};

/// This host's name as the kernel has it; "localhost" if it has none.
std::string host_name();

}  // namespace ddl::runtime
