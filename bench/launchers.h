// How the harness starts two or more ranks of a program under each launcher, and whether it can.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bench/entrant.h"
#include "bench/settings.h"

namespace ddl::bench {

enum class Launcher {
  kFloor,  ///< spawn_floor: starts and waits, nothing else
  kDdlrun,
  kMpirun,  ///< --bind-to none: the harness pins, the same for all
};

/// What is to be started: a rank program and how many.
struct RankProgram {
  std::vector<std::string> argv;  ///< argv[0] without a slash lies beside ddl-bench
  int ranks = kRanks;
  std::vector<std::string> launcher_options = {};  ///< of this entrant only
  std::vector<std::pair<std::string, std::string>> environment = {};
};

/// The command line, pinned to the settings' CPUs. More ranks than CPUs are allowed.
Command launch(Launcher launcher, const RankProgram& program, const Site& site, const Settings& settings);

/// Why this launcher cannot start this program here: "mpirun is not in PATH".
std::optional<std::string> why_absent(Launcher launcher, const RankProgram& program, const Site& site);

/// Why there is no such entrant's program: a peer that CMake did not find.
std::string why_not_built(const std::string& path, const Site& site);

}  // namespace ddl::bench
