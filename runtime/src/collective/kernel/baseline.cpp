// What every processor of the architecture has: plain loops, of which the compiler makes what it may.
#include "runtime/src/collective/kernel/table.h"

namespace ddl::runtime {

constinit const Kernels kBaselineKernels = make_kernels<OneLane>();

}  // namespace ddl::runtime
