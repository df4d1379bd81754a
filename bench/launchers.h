// The command lines by which ranks are started under each launcher, on this host and on the hosts of a cluster, and
// the reasons why a launcher cannot be used here.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bench/contender.h"
#include "bench/settings.h"

namespace ddl::bench {

enum class Launcher {
  kFloor,  ///< launch_floor: only starts the ranks and waits for them
  kDdlrun,
  kMpirun,  ///< with --bind-to none: the harness pins all contenders alike
};

/// The rank program to start, and the number of its ranks.
struct RankProgram {
  std::vector<std::string> argv;  ///< an argv[0] without a slash is in the folder of ddl-bench
  int ranks = kRanks;
  std::vector<std::string> launcher_options = {};  ///< of this contender only
  Environment environment = {};
  const PeerMpi* mpi = nullptr;  ///< for kMpirun: whose launcher; null: the one in PATH
};

/// The command line, pinned to the settings' CPUs. More ranks than CPUs are allowed.
Command launch(Launcher launcher, const RankProgram& program, const Site& site, const Settings& settings);

/// Why this launcher cannot start this program here: "mpirun is not in PATH".
std::optional<std::string> why_absent(Launcher launcher, const RankProgram& program, const Site& site);

/// Why a contender's program does not exist: "CMake found no Gloo".
std::string why_not_built(const std::string& path, const Site& site);

enum class HostLauncher {
  kSsh,  ///< launch_floor: runs the command once on each host, all at once
  kDdlrun,
  kMpirun,
};

struct HostJob {
  HostLauncher launcher = HostLauncher::kSsh;
  std::vector<std::string> hosts;
  int ranks_per_host = 1;  ///< ignored for kSsh
  std::vector<std::string> options = {};
  std::string program;  ///< a name without a slash is in the folder of ddl-bench
  std::vector<std::string> arguments = {};
};

Command launch_on_hosts(const HostJob& job, const Site& site);

/// Why it cannot be started here: "mpirun is not in PATH".
std::optional<std::string> why_absent(const HostJob& job, const Site& site);

}  // namespace ddl::bench
