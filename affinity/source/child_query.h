// A library may crash or hang while it is asked for GPUs or for a topology. The question is therefore asked in a
// child process with a time limit, and the answer is sent back as JSON.
#pragma once

#include <chrono>
#include <functional>
#include <vector>

#include "affinity/source/vendor_gpus.h"
#include "affinity/topology.h"

namespace ddl::affinity {

/// Returns what ask() returns in the child. Further errors: the child was killed by a signal, or it did not answer in
/// time and has been killed. For a process with one thread. The child's pipe is close-on-exec.
Result<std::vector<VendorGpu>> in_child(const std::function<Result<std::vector<VendorGpu>>()>& ask,
                                        std::chrono::milliseconds patience);

/// The same for a topology that is read from a file or text of unknown origin: it may take neither more memory nor
/// more time than any node's does. Error kInvalidArgument, also for one that is not consistent; what: the file or
/// variable, for the sentence.
Result<Topology> topology_in_child(const std::function<Result<Topology>()>& load, const std::string& what,
                                   std::chrono::seconds patience);

}  // namespace ddl::affinity
