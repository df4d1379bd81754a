// Which of a processor's instruction sets the kernels use.
#pragma once

#include <vector>

namespace ddl::runtime {

enum class InstructionSet {
  kBaseline,  ///< what every processor of the architecture has: SSE2, NEON
  kAvx2,
  kAvx512,  ///< with BW, DQ and VL
};

/// Those that this processor has, kernels are compiled for, and the best last.
std::vector<InstructionSet> instruction_sets();
/// The best, unless another was chosen. The choice is the process's; results have the same bits with each.
InstructionSet instruction_set();
/// For tests: chooses one of instruction_sets(). From any thread, between calls.
void choose_instruction_set(InstructionSet chosen);

}  // namespace ddl::runtime
