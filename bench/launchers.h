// The command lines by which ranks are started under each launcher, on this host and on the hosts of a cluster, and the
// reasons why a launcher cannot be used here.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bench/contender.h"
#include "bench/settings.h"

namespace ddl::bench {

// How the harness starts two or more ranks of a program under each launcher, and whether it can.

enum class Launcher {
  kFloor,  ///< launch_floor: starts and waits, nothing else
  kDdlrun,
  kMpirun,  ///< --bind-to none: the harness pins, the same for all
};

/// What is to be started: a rank program and how many.
struct RankProgram {
  std::vector<std::string> argv;  ///< argv[0] without a slash lies beside ddl-bench
  int ranks = kRanks;
  std::vector<std::string> launcher_options = {};  ///< of this contender only
  Environment environment = {};
};

/// The command line, pinned to the settings' CPUs. More ranks than CPUs are allowed.
Command launch(Launcher launcher, const RankProgram& program, const Site& site, const Settings& settings);

/// Why this launcher cannot start this program here: "mpirun is not in PATH".
std::optional<std::string> why_absent(Launcher launcher, const RankProgram& program, const Site& site);

/// Why there is no such contender's program: a peer that CMake did not find.
std::string why_not_built(const std::string& path, const Site& site);

// How the harness starts ranks on the hosts of a cluster under each launcher, and whether it can.

enum class HostLauncher {
  kSsh,  ///< launch_floor: the command once on each host, all at once, nothing else
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
