// How the harness starts ranks on the hosts of a cluster under each launcher, and whether it can.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bench/entrant.h"
#include "bench/settings.h"

namespace ddl::bench {

enum class HostLauncher {
  kSsh,  ///< ssh_floor: the command once on each host, all at once, nothing else
  kDdlrun,
  kMpirun,
};

struct HostJob {
  HostLauncher launcher = HostLauncher::kSsh;
  std::vector<std::string> hosts;
  int ranks_per_host = 1;  ///< not for kSsh
  std::vector<std::string> options = {};
  std::string program;  ///< without a slash it lies beside ddl-bench
  std::vector<std::string> arguments = {};
};

Command launch_on_hosts(const HostJob& job, const Site& site);

/// Why it cannot be started here: "mpirun is not in PATH".
std::optional<std::string> why_absent(const HostJob& job, const Site& site);

}  // namespace ddl::bench
