#include "runtime/src/collective/instruction_set.h"

#include <atomic>

namespace ddl::runtime {
namespace {

std::atomic<InstructionSet>& current() {
  static std::atomic<InstructionSet> set{instruction_sets().back()};
  return set;
}

}  // namespace

std::vector<InstructionSet> instruction_sets() {
  std::vector<InstructionSet> sets{InstructionSet::kBaseline};
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") != 0) sets.push_back(InstructionSet::kAvx2);
  if (__builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
      __builtin_cpu_supports("avx512dq") != 0 && __builtin_cpu_supports("avx512vl") != 0) {
    sets.push_back(InstructionSet::kAvx512);
  }
#endif
  return sets;
}

InstructionSet instruction_set() { return current().load(std::memory_order_relaxed); }

void choose_instruction_set(InstructionSet chosen) { current().store(chosen, std::memory_order_relaxed); }

}  // namespace ddl::runtime
