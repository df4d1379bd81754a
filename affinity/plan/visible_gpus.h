// The GPUs that a variable such as CUDA_VISIBLE_DEVICES leaves.
#pragma once

#include <string_view>

#include "affinity/topology.h"

namespace ddl::affinity {

/// Leaves the GPUs of the topology that the value names, in its order, each with its visible_as: by index, by "GPU-" and the
/// beginning of a UUID, or by "MIG-...", which is a GPU of unknown place unless the topology has that UUID. As the vendors'
/// libraries do, what comes behind the first word that names nothing ("-1") is not looked at. The vendor's GPUs alone are
/// chosen from; the others go.
void keep_visible(Topology& topology, GpuVendor vendor, std::string_view value);

}  // namespace ddl::affinity
