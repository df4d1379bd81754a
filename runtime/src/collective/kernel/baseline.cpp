// The baseline that every processor of the architecture has: plain loops, compiled without further instruction sets.
#include "runtime/src/collective/kernel/table.h"

namespace ddl::runtime {

constinit const Kernels kBaselineKernels = make_kernels<OneLane>();

}  // namespace ddl::runtime
