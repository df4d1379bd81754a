// What firmware does not tell of a board and people have found out: which cores a device is nearest to.
#pragma once

#include "affinity/topology.h"

namespace ddl::affinity {

/// Narrows the places of GPUs on a board that is in the table, by bus id: from a NUMA node to the one L3 in it that the
/// GPU is wired to. Leaves alone what is as narrow already, and what contradicts the table. Pure.
void apply_board_quirks(Topology& topology);

}  // namespace ddl::affinity
