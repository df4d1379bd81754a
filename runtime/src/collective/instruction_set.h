// The choice of the instruction set that the kernels use.
#pragma once

#include <vector>

#include "runtime/src/collective/kernel/kernels.h"

namespace ddl::runtime {

enum class InstructionSet {
  kBaseline,  ///< the compiler's baseline of the architecture, which every processor has: SSE2 on x86-64
  kAvx2,
  kAvx512,  ///< with BW, DQ and VL
  kNeon,    ///< the baseline of aarch64, and its instructions for 16-bit floats
};

/// The sets that this processor has and kernels are compiled for, the best one last.
std::vector<InstructionSet> instruction_sets();
/// The best, unless another was chosen. The choice is the process's; results have the same bits with each.
InstructionSet instruction_set();
/// For tests: chooses one of instruction_sets(). From any thread, between calls.
void choose_instruction_set(InstructionSet chosen);

/// The kernels of one of instruction_sets().
const Kernels& kernels_of(InstructionSet set);
/// The kernels of the set in use.
const Kernels& kernels();

}  // namespace ddl::runtime
