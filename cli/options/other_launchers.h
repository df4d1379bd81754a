// Launchers that stand in the place of the command: torchrun, mpirun, sbatch, ... ddlrun takes the place of most of
// them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/options/given_options.h"

namespace ddl::cli {

/// What a launcher's command line asks for, in ddlrun's words.
struct OtherLauncher {
  std::string_view name;              ///< "torchrun"
  bool starts_ranks_of_node = false;  ///< it may run once on each node, and starts the ranks there
  std::string ranks;                  ///< for -np; these are "" where it says nothing
  std::string ranks_per_node;
  std::string nodes;
  SplitArgv others;                  ///< its other options, if they have ddlrun's names
  std::vector<std::string> program;  ///< what it starts; empty: not found
};

/// nullopt: the command is none. Pure.
std::optional<OtherLauncher> other_launcher(const std::vector<std::string>& command);

/// Whether the command is a launcher which may run once on each node, and then needs all of the node. Pure.
bool starts_own_ranks(const std::vector<std::string>& command);

/// Refuses a launcher as the command, and says which line to type instead. One that starts the ranks of its node may be
/// the only rank there (--ranks-per-node 1), and each may be the only rank of the job. Pure. given: with the options of
/// a configuration file.
Status refuse_launcher(const SplitArgv& split, const GivenOptions& given);

}  // namespace ddl::cli
