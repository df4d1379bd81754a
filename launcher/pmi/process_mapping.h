// Which rank is on which node, as programs of MPICH want to be told.
#pragma once

#include <string>
#include <vector>

namespace ddl::launcher {

/// "(vector,(0,2,4))": blocks of (first node, number of nodes, ranks on each), in the order of ranks. node_ranks: those of each
/// node. Pure.
std::string process_mapping(const std::vector<std::vector<int>>& node_ranks);

}  // namespace ddl::launcher
