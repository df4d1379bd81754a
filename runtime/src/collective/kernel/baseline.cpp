// The baseline that every processor of the architecture has: plain loops, compiled without further instruction sets.
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "runtime/src/collective/kernel/table.h"

namespace ddl::runtime {
namespace {

struct Baseline : OneLane {
  /// An architecture without streaming stores stores as always.
  static void stream_line(const std::byte* from, std::byte* to) {
#if defined(__SSE2__)
    const auto* source = reinterpret_cast<const __m128i*>(from);
    auto* target = reinterpret_cast<__m128i*>(to);
    for (int i = 0; i < 4; ++i) _mm_stream_si128(target + i, _mm_loadu_si128(source + i));
#else
    __builtin_memcpy(to, from, 64);
#endif
  }
};

}  // namespace

constinit const Kernels kBaselineKernels = make_kernels<Baseline>();

}  // namespace ddl::runtime
