// Which ranks run on which host, a value that is the same on all ranks, and the name of this host. Compiled into
// libddl and into the PMIx module.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"

namespace ddl::runtime {

struct HostLayout {
  /// The ranks of each host, ascending; the hosts in the order of their lowest ranks. Every rank is in it once.
  std::vector<std::vector<int>> hosts{{0}};
  /// This rank's host, an index of hosts.
  int own = 0;

  /// Sorts the groups, which may be in any order. An error unless they hold every rank from 0 to size - 1 once.
  static Result<HostLayout> of(std::vector<std::vector<int>> groups, int rank, int size);

  int host_count() const { return std::ssize(hosts); }
  const std::vector<int>& local() const { return hosts[own]; }
  int size() const;
  int local_rank(int rank) const;  ///< of a rank of the own host
  int host_of(int rank) const;     ///< the host, as an index of hosts, that a rank is on
  int max_local_size() const;      ///< the number of ranks on the largest host
  /// The number of ranks of each host that communicate with other hosts: that of the smallest host, so that each of
  /// them has a partner of the same local rank on every host.
  int lane_count() const;
  /// The own host's index among the hosts that have this local rank, and the number of these hosts.
  int cross_rank(int local_rank) const;
  int cross_size(int local_rank) const;
};

/// This host's name as the kernel reports it; "localhost" if it has none.
std::string host_name();

}  // namespace ddl::runtime
