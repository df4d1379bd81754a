// A question to a library that may crash or hang, asked in a child.
#pragma once

#include <chrono>
#include <functional>
#include <vector>

#include "affinity/source/vendor_gpus.h"

namespace ddl::affinity {

/// What ask() returns there. Errors besides its own: that the child was killed by a signal, or did not answer in time, after
/// which it is gone. For a process with one thread; inherits nothing to whoever runs longer.
Result<std::vector<VendorGpu>> in_child(const std::function<Result<std::vector<VendorGpu>>()>& ask,
                                        std::chrono::milliseconds patience);

}  // namespace ddl::affinity
