// A topology from what tools print and people paste: `rocm-smi --showtoponuma` or `nvidia-smi topo -m`, with `lscpu`.
#pragma once

#include <string>
#include <string_view>

#include "affinity/topology.h"
#include "base/error.h"

namespace ddl::affinity {

/// Reads the lines that it knows wherever they stand, between prompts and anything else:
///   NUMA node0 CPU(s):  0-15,64-79            (lscpu)
///   GPU[0] : (Topology) Numa Node: 3          (rocm-smi; also "GPU 0  :", tabs, and -1 for unknown)
///   GPU0  X  NV12 ... 48-63,176-191  3        (nvidia-smi topo -m, under its own head line)
/// Of NUMA nodes a second range as long as the first one is taken for its cores' second hardware threads. Nothing tells
/// packages and L3s. Error kInvalidArgument names source and what is missing in it.
Result<Topology> topology_of_text(std::string_view text, const std::string& source);

}  // namespace ddl::affinity
