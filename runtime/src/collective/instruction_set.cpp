#include "runtime/src/collective/instruction_set.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <atomic>

namespace ddl::runtime {
namespace {

// Only this list depends on which files of kernel/ the architecture has.
struct Known {
  InstructionSet set;
  const Kernels* kernels;
};

#if defined(__x86_64__)
/// By cpuid, because clang 16's __builtin_cpu_supports() does not know F16C. The check for AVX2 covers the operating
/// system's support of the registers.
bool has_f16c() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}
#endif

std::vector<Known> known() {
  std::vector<Known> found{{InstructionSet::kBaseline, &kBaselineKernels}};
#if defined(__x86_64__)
  const bool has_avx2 = __builtin_cpu_supports("avx2") != 0 && has_f16c();
  const bool has_avx512 = __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
                          __builtin_cpu_supports("avx512dq") != 0 && __builtin_cpu_supports("avx512vl") != 0;
  if (has_avx2) found.push_back({InstructionSet::kAvx2, &kAvx2Kernels});
  if (has_avx512) found.push_back({InstructionSet::kAvx512, &kAvx512Kernels});
#elif defined(__aarch64__)
  found.push_back({InstructionSet::kNeon, &kNeonKernels});
#endif
  return found;
}

/// An atomic pointer, so that a concurrent reader sees either the old or the new choice.
std::atomic<const Kernels*>& current() {
  static std::atomic<const Kernels*> kernels{known().back().kernels};
  return kernels;
}

}  // namespace

std::vector<InstructionSet> instruction_sets() {
  std::vector<InstructionSet> sets;
  for (const Known& one : known()) sets.push_back(one.set);
  return sets;
}

InstructionSet instruction_set() {
  for (const Known& one : known()) {
    if (one.kernels == &kernels()) return one.set;
  }
  return InstructionSet::kBaseline;
}

void choose_instruction_set(InstructionSet chosen) {
  current().store(&kernels_of(chosen), std::memory_order_relaxed);
}

const Kernels& kernels_of(InstructionSet set) {
  for (const Known& one : known()) {
    if (one.set == set) return *one.kernels;
  }
  return kBaselineKernels;
}

const Kernels& kernels() { return *current().load(std::memory_order_relaxed); }

}  // namespace ddl::runtime
