// Which of a processor's instruction sets the kernels use.
#pragma once

#include <vector>

#include "runtime/src/collective/kernel/kernels.h"

namespace ddl::runtime {

enum class InstructionSet {
  kBaseline,  ///< what every processor of the architecture has, as the compiler knows it: SSE2 on x86-64
  kAvx2,
  kAvx512,  ///< with BW, DQ and VL
  kNeon,    ///< the baseline of aarch64, and its instructions for 16-bit floats
};

/// Those that this processor has, kernels are compiled for, and the best last.
std::vector<InstructionSet> instruction_sets();
/// The best, unless another was chosen. The choice is the process's; results have the same bits with each.
InstructionSet instruction_set();
/// For tests: chooses one of instruction_sets(). From any thread, between calls.
void choose_instruction_set(InstructionSet chosen);

/// One of instruction_sets() as what can be called.
const Kernels& kernels_of(InstructionSet set);
/// Those of the one in use.
const Kernels& kernels();

}  // namespace ddl::runtime
