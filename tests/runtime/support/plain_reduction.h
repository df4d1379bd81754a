// Simple reductions element by element, as reduce_kernel.h describes them, as the reference for the kernels.
#pragma once

#include <cstddef>
#include <vector>

#include "runtime/src/collective/reduce_kernel.h"

namespace ddl::test {

/// What reduce_chunk() should write for the first count elements of the inputs.
std::vector<std::byte> plain_reduction(const runtime::Reduction& reduction,
                                       const std::vector<std::vector<std::byte>>& inputs, std::size_t count);

}  // namespace ddl::test
