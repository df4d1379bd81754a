// NEON, which every aarch64 processor has: the baseline's loops, but with instructions for 16-bit floats.
#include <arm_neon.h>

#include "runtime/src/collective/kernel/table.h"

namespace ddl::runtime {
namespace {

struct FourLanes {
  static constexpr std::size_t kLanes = 4;
  using Floats [[gnu::vector_size(16)]] = float;

  static Floats load(const float* from) { return vld1q_f32(from); }
  static Floats load(const Float16* from) {
    return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(&from->bits)));
  }
  static Floats load(const Bfloat16* from) {
    return vreinterpretq_f32_u32(vshll_n_u16(vld1_u16(&from->bits), 16));
  }

  static void store(float* to, Floats values) { vst1q_f32(to, values); }
  // For values that have been through one_nan(), these give the same result as Store.
  static void store(Float16* to, Floats values) {
    vst1_u16(&to->bits, vreinterpret_u16_f16(vcvt_f16_f32(values)));
  }
  static void store(Bfloat16* to, Floats values) {
    const uint32x4_t all = vreinterpretq_u32_f32(values);
    const uint32x4_t odd = vandq_u32(vshrq_n_u32(all, 16), vdupq_n_u32(1));
    vst1_u16(&to->bits, vaddhn_u32(all, vaddq_u32(odd, vdupq_n_u32(0x7FFF))));
  }

  /// Pairs with a non-temporal hint; neither g++ nor the intrinsics of Arm offer them.
  static void stream_line(const std::byte* from, std::byte* to) {
    asm volatile(
        "ldp q0, q1, [%0]\n\t"
        "ldp q2, q3, [%0, #32]\n\t"
        "stnp q0, q1, [%1]\n\t"
        "stnp q2, q3, [%1, #32]"
        :
        : "r"(from), "r"(to)
        : "v0", "v1", "v2", "v3", "memory");
  }
};

}  // namespace

constinit const Kernels kNeonKernels = make_kernels<FourLanes>();

}  // namespace ddl::runtime
